// The camera: the visible part of the picture, and its scale.
import { canvas, repaint } from "./canvas.js";
import { extent, firstPlace } from "./layout.js";

// With `isFitted` or `isBeginning`, the picture follows the size of the window until the user moves
// it: the frame of a notebook may have no size when this script runs.
export const view = { scale: 1, x: 0, y: 0, isFitted: true, isBeginning: false };
// The smallest scale, except to show a larger picture as a whole.
const SMALLEST = 0.01;
const LARGEST = 4;
// Below this scale a box has only one text, as large as fits; below the second, none.
export const TEXT = 0.45;
export const BIG_TEXT = 0.16;

// The smallest scale at which labels are easy to read, and the initial scale of a picture that does
// not fit at that scale.
const LEGIBLE = 0.75;
const READING = 0.9;
// The margin of a picture that begins in a corner.
const CORNER = 24;

// The scale that fits the whole picture; a frame without a size counts as a small one.
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
  view.isBeginning = false;
  repaint();
}

// The initial offset along one axis: pictures that fit are centered, others start around a place.
function beginning(place, size, room) {
  if (size <= room) return (room - size) / 2;
  return -Math.min(Math.max(place - room / 2, -CORNER), size + CORNER - room);
}

// The initial view: the whole picture if that is legible, else its first kernel.
export function begin() {
  if (fitting() >= LEGIBLE) {
    fit();
    return;
  }
  view.scale = READING;
  const [x, y] = firstPlace();
  view.x = beginning(x * view.scale, extent[0] * view.scale, canvas.clientWidth);
  view.y = beginning(y * view.scale, extent[1] * view.scale, canvas.clientHeight - 36);
  view.isFitted = false;
  view.isBeginning = true;
  repaint();
}

export function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  const smallest = Math.min(SMALLEST, fitting());
  const scale = Math.min(Math.max(view.scale * factor, smallest), LARGEST);
  view.x = x - (x - view.x) * scale / view.scale;
  view.y = y - (y - view.y) * scale / view.scale;
  view.scale = scale;
  moved();
}

export function pan(dx, dy) {
  view.x += dx;
  view.y += dy;
  moved();
}

// Centers a point of the picture.
export function lookAt(x, y) {
  view.x = canvas.clientWidth / 2 - x * view.scale;
  view.y = canvas.clientHeight / 2 - y * view.scale;
  moved();
}

// Centers a rectangle at a legible scale.
export function center([x, y, w, h]) {
  view.scale = Math.max(view.scale, 0.8);
  lookAt(x + w / 2, y + h / 2);
}

export function moved() {
  view.isFitted = view.isBeginning = false;
  repaint();
}

// Conversion of a point of the window to the picture, and of the middle of a rectangle of the
// picture to the window.
export function fromScreen(clientX, clientY) {
  const bounds = canvas.getBoundingClientRect();
  return [(clientX - bounds.left - view.x) / view.scale, (clientY - bounds.top - view.y) / view.scale];
}

export function toScreen([x, y, w, h]) {
  const bounds = canvas.getBoundingClientRect();
  return [bounds.left + view.x + (x + w / 2) * view.scale, bounds.top + view.y + (y + h / 2) * view.scale];
}
