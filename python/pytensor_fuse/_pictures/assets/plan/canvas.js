// The canvas, and its repainting: once for all changes since the last frame.

export const byId = (id) => document.getElementById(id);
export const canvas = byId("picture");
export const context = canvas.getContext("2d");

let painter = () => {};
let isWaiting = false;

// Registers the painter: its module imports those that request repainting.
export function paintWith(paint) {
  painter = paint;
}

export function repaint() {
  if (isWaiting) return;
  isWaiting = true;
  requestAnimationFrame(() => {
    isWaiting = false;
    painter();
  });
}
