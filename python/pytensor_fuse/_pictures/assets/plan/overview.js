// The overview: the whole picture, small, with a draggable frame around the visible part.
//
// Its aspect ratio is fixed, since a long row of boxes to scale would be a mere line.
import { byId, canvas } from "./canvas.js";
import { boxColors, colors, nodeColors } from "./colors.js";
import { isGroup, members, nBoxes } from "./graph.js";
import { boxRectangle, extent } from "./layout.js";
import { lookAt, view } from "./view.js";

const overview = byId("overview");
const small = overview.getContext("2d");
const OVERVIEW_MARGIN = 4;
// The least size of a box in it, in pixels.
const LEAST_SIDE = 1.5;

// Pixels of the overview per unit of the picture, along x and y.
const stretch = () => [
  (overview.clientWidth - 2 * OVERVIEW_MARGIN) / Math.max(extent[0], 1),
  (overview.clientHeight - 2 * OVERVIEW_MARGIN) / Math.max(extent[1], 1),
];

// Left, top, width and height of the visible part of the picture.
const seenPart = () => [-view.x / view.scale, -view.y / view.scale,
  canvas.clientWidth / view.scale, canvas.clientHeight / view.scale];

// The frame of the visible part, clipped to the overview.
export function overviewFrame() {
  const [sx, sy] = stretch();
  const [x, y, w, h] = seenPart();
  const cut = (at, length) => Math.min(Math.max(at, 0), length);
  const [left, top] = [cut(x, extent[0]), cut(y, extent[1])];
  const [right, bottom] = [cut(x + w, extent[0]), cut(y + h, extent[1])];
  return [OVERVIEW_MARGIN + left * sx, OVERVIEW_MARGIN + top * sy, (right - left) * sx, (bottom - top) * sy];
}

export function paintOverview() {
  const [x, y, w, h] = seenPart();
  // Hidden when the whole picture is visible.
  overview.hidden = x <= 0 && y <= 0 && x + w >= extent[0] && y + h >= extent[1];
  if (overview.hidden) return;
  const ratio = devicePixelRatio || 1;
  overview.width = Math.round(overview.clientWidth * ratio);
  overview.height = Math.round(overview.clientHeight * ratio);
  small.setTransform(ratio, 0, 0, ratio, 0, 0);
  small.fillStyle = colors.ground;
  small.fillRect(0, 0, overview.clientWidth, overview.clientHeight);
  const [sx, sy] = stretch();
  for (let box = 0; box < nBoxes; box++) {
    const [left, top, width, height] = boxRectangle(box);
    small.fillStyle = isGroup(box) ? boxColors(box)[2] : nodeColors(members[box][0])[1];
    small.fillRect(OVERVIEW_MARGIN + left * sx, OVERVIEW_MARGIN + top * sy,
      Math.max(width * sx, LEAST_SIDE), Math.max(height * sy, LEAST_SIDE));
  }
  small.strokeStyle = colors.accent;
  small.lineWidth = 2;
  small.strokeRect(...overviewFrame());
}

let isDragged = false;

function moveView(event) {
  const bounds = overview.getBoundingClientRect();
  const [sx, sy] = stretch();
  lookAt((event.clientX - bounds.left - OVERVIEW_MARGIN) / sx, (event.clientY - bounds.top - OVERVIEW_MARGIN) / sy);
}

overview.addEventListener("pointerdown", (event) => {
  isDragged = true;
  overview.setPointerCapture(event.pointerId);
  moveView(event);
});
overview.addEventListener("pointermove", (event) => {
  if (isDragged) moveView(event);
});
for (const end of ["pointerup", "pointercancel"]) {
  overview.addEventListener(end, () => { isDragged = false; });
}
