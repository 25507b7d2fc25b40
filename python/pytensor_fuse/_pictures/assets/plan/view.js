// The camera: which part of the picture is seen, and how large.
import { canvas, repaint } from "./canvas.js";
import { extent } from "./layout.js";

// `isFitted` until somebody moves: then the picture follows the size of the window, which a frame
// may not have when this runs.
export const view = { scale: 1, x: 0, y: 0, isFitted: true };
// What does not fit at that scale is shown as a whole nevertheless, and no smaller.
const SMALLEST = 0.01;
const LARGEST = 4;
// Below this scale only one text is written on a box, as large as fits; then none.
export const TEXT = 0.45;
export const BIG_TEXT = 0.16;

// The scale at which all is seen; a frame that has no size yet counts as a small one.
function fitting() {
  const [w, h] = [Math.max(canvas.clientWidth - 48, 20), Math.max(canvas.clientHeight - 84, 20)];
  return Math.min(w / Math.max(extent[0], 1), h / Math.max(extent[1], 1), 1.25);
}

export function fit() {
  const [w, h] = [canvas.clientWidth, canvas.clientHeight - 36];
  view.scale = fitting();
  view.x = (w - extent[0] * view.scale) / 2;
  view.y = (h - extent[1] * view.scale) / 2;
  view.isFitted = true;
  repaint();
}

export function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  const smallest = Math.min(SMALLEST, fitting());
  const scale = Math.min(Math.max(view.scale * factor, smallest), LARGEST);
  view.x = x - (x - view.x) * scale / view.scale;
  view.y = y - (y - view.y) * scale / view.scale;
  view.scale = scale;
  view.isFitted = false;
  repaint();
}

export function pan(dx, dy) {
  view.x += dx;
  view.y += dy;
  view.isFitted = false;
  repaint();
}

// Brings a rectangle into the middle, large enough to be read.
export function center([x, y, w, h]) {
  view.scale = Math.max(view.scale, 0.8);
  view.x = canvas.clientWidth / 2 - (x + w / 2) * view.scale;
  view.y = canvas.clientHeight / 2 - (y + h / 2) * view.scale;
  view.isFitted = false;
  repaint();
}

// The place in the picture of a point of the window, and the other way round for the middle of a
// rectangle.
export function fromScreen(clientX, clientY) {
  const bounds = canvas.getBoundingClientRect();
  return [(clientX - bounds.left - view.x) / view.scale, (clientY - bounds.top - view.y) / view.scale];
}

export function toScreen([x, y, w, h]) {
  const bounds = canvas.getBoundingClientRect();
  return [bounds.left + view.x + (x + w / 2) * view.scale, bounds.top + view.y + (y + h / 2) * view.scale];
}
