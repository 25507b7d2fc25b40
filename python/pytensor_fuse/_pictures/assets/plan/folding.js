// Opening and closing boxes of several nodes.
import { choose } from "./choice.js";
import { arrange, left, open, openAll, top } from "./layout.js";
import { buildLines } from "./lines.js";
import { fit, moved, view } from "./view.js";

export function rearrange() {
  arrange();
  buildLines();
}

export function toggle(box) {
  const [x, y] = [left[box], top[box]];
  open[box] = !open[box];
  rearrange();
  // The clicked box stays under the pointer.
  view.x += (x - left[box]) * view.scale;
  view.y += (y - top[box]) * view.scale;
  moved();
  choose({ box });
}

export function toggleAll(state) {
  openAll(state);
  rearrange();
  fit();
  choose(null);
}
