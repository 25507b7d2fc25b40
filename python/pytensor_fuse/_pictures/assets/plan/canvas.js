// The canvas, and when it is painted: once for all that changed since it last was.

export const byId = (id) => document.getElementById(id);
export const canvas = byId("picture");
export const context = canvas.getContext("2d");

let painter = () => {};
let isWaiting = false;

// Names what paints the canvas: it stands above all that asks for painting.
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
