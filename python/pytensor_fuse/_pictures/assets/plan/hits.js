// Hit testing: the thing under a point of the window.
import { context } from "./canvas.js";
import { chosen } from "./choice.js";
import { isGroup, members, nBoxes } from "./graph.js";
import { boxRectangle, nodeRectangle, open, toggleSquare } from "./layout.js";
import { lines } from "./lines.js";
import { fromScreen, TEXT, view } from "./view.js";

// The thing there, with {toggle} if it is the button of a box; null on the ground.
export function thingAt(clientX, clientY) {
  const [x, y] = fromScreen(clientX, clientY);
  const isIn = ([l, t, w, h]) => x >= l && x <= l + w && y >= t && y <= t + h;
  let ground = null;
  for (let box = 0; box < nBoxes; box++) {
    if (!isIn(boxRectangle(box))) continue;
    if (!isGroup(box)) return { node: members[box][0] };
    const [tx, ty, side] = toggleSquare(box);
    if (view.scale >= TEXT && isIn([tx - 2, ty - 2, side + 4, side + 4])) return { box, toggle: true };
    if (!open[box]) return { box };
    const node = members[box].find((member) => isIn(nodeRectangle(member)));
    if (node !== undefined) return { node };
    ground = { box };
  }
  const reach = 5 / view.scale;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.lineWidth = 2 * reach;
  for (const each of [...(chosen ? chosen.lines : []), ...lines]) {
    const [x0, y0, x1, y1] = each.bounds;
    if (x < x0 - 25 - reach || x > x1 + 25 + reach || y < y0 - reach || y > y1 + reach) continue;
    const isWhole = !each.hidden || (chosen && chosen.lines.has(each));
    if (context.isPointInStroke(isWhole ? each.path : each.stubs, x, y)) return { line: each };
  }
  return ground;
}
