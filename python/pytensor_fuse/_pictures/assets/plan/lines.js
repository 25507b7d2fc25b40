// Lines of edges: edges between the same two rectangles share one line.
import { append, edges, edgesBetween, edgesInside, nBoxes, nNodes, nodes } from "./graph.js";
import { bendsOf, columnLeft, columnRight, crossing, nodeRectangle, open } from "./layout.js";

// The length of the two ends that are drawn of a hidden edge until it is chosen.
const STUB = 12;

export let lines = [];
export let allLines = new Path2D();

export function buildLines() {
  lines = [];
  DATA.lines.forEach(([from, to], i) => {
    const [first, last] = bendsOf(i);
    const bends = [];
    for (let bend = first; bend < last; bend++) bends.push(...crossing(bend));
    addLines(from, to, bends, false);
  });
  for (const [from, to] of DATA.hidden) addLines(from, to, [], true);
  for (let box = 0; box < nBoxes; box++) {
    if (open[box]) edgesInside[box].forEach((edge) => lines.push(line([edge], [], false)));
  }
  allLines = new Path2D();
  for (const each of lines) allLines.addPath(each.hidden ? each.stubs : each.path);
}

function addLines(from, to, bends, hidden) {
  const groups = new Map();
  for (const edge of edgesBetween(from, to)) {
    const source = open[from] ? edges.source[edge] : 0;
    const target = open[to] ? edges.target[edge] : 0;
    append(groups, source * nNodes + target, edge);
  }
  for (const group of groups.values()) lines.push(line(group, bends, hidden));
}

function line(group, bends, hidden) {
  const [source, target] = [edges.source[group[0]], edges.target[group[0]]];
  const [from, to] = [nodes.box[source], nodes.box[target]];
  const [sx, sy, sw, sh] = nodeRectangle(source);
  const [tx, ty, , th] = nodeRectangle(target);
  const points = [[sx + sw, sy + sh / 2]];
  if (from !== to) {
    points.push([columnRight[from], sy + sh / 2], ...bends, [columnLeft[to], ty + th / 2]);
  }
  points.push([tx, ty + th / 2]);
  const path = new Path2D();
  path.moveTo(...points[0]);
  const bounds = [Infinity, Infinity, -Infinity, -Infinity];
  points.forEach(([x, y], i) => {
    bounds[0] = Math.min(bounds[0], x);
    bounds[1] = Math.min(bounds[1], y);
    bounds[2] = Math.max(bounds[2], x);
    bounds[3] = Math.max(bounds[3], y);
    if (i === 0) return;
    const [px, py] = points[i - 1];
    if (py === y) path.lineTo(x, y);
    else {
      const reach = Math.max((x - px) / 2, 20);
      path.bezierCurveTo(px + reach, py, x - reach, y, x, y);
    }
  });
  const middle = points[Math.floor(points.length / 2)];
  const before = points[Math.floor(points.length / 2) - 1];
  return { edges: group, from, to, hidden, path, stubs: hidden ? stubs(points) : null, bounds, points,
    middle: [(middle[0] + before[0]) / 2, (middle[1] + before[1]) / 2],
    stubEnd: [points[points.length - 1][0] - STUB / 2, points[points.length - 1][1]] };
}

function stubs(points) {
  const path = new Path2D();
  const [[x0, y0], [x1, y1]] = [points[0], points[points.length - 1]];
  path.moveTo(x0, y0);
  path.lineTo(x0 + STUB, y0);
  path.arc(x0 + STUB, y0, 1, 0, 7);
  path.moveTo(x1 - STUB, y1);
  path.arc(x1 - STUB, y1, 1, 0, 7);
  path.lineTo(x1, y1);
  return path;
}
