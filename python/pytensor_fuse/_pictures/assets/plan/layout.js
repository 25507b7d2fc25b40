// The layout: positions of boxes, and which are open.
//
// A vertex is a box or, numbered after all boxes, a bend, where a long edge crosses a column.
import { boxes, isGroup, nBoxes, nodes } from "./graph.js";

const { gaps } = DATA;
// As in rust/layout/src: the heights of boxes include the rest of their gap.
const [BEND_HEIGHT, BEND_GAP] = [4, 4];

export const open = Array.from({ length: nBoxes }, () => false);
// The initial layout, for all boxes closed or for all open.
let base = DATA.collapsed;

// Positions and sizes of the vertices, and the left and right ends of their columns.
export let left, top, width, height, columnLeft, columnRight;
// Width and height of the whole picture.
export let extent;

// Opens or closes all boxes of several nodes.
export function openAll(state) {
  for (let box = 0; box < nBoxes; box++) open[box] = state && isGroup(box);
  base = state ? DATA.expanded : DATA.collapsed;
}

// The first bend of an edge between boxes, by its position in DATA.lines, and one past its last.
export const bendsOf = (position) => base.bends[position];

// The two points in which an edge crosses the column of a bend.
export function crossing(bend) {
  const y = top[bend] + BEND_HEIGHT / 2;
  return [[columnLeft[bend], y], [columnRight[bend], y]];
}

export const boxRectangle = (box) => [left[box], top[box], width[box], height[box]];

// The rectangle of a node: its own in an open box, else that of its box.
export function nodeRectangle(node) {
  const box = nodes.box[node];
  if (!isGroup(box) || !open[box]) return boxRectangle(box);
  const [x, y, w, h] = nodes.inner.slice(4 * node, 4 * node + 4);
  return [left[box] + x, top[box] + y, w, h];
}

// Left, top and side of the button that opens and closes a box, in its corner.
export const toggleSquare = (box) => [left[box] + width[box] - 17, top[box] + 5, 12];

// The middle of the leftmost kernel, or the leftmost box if there is none; ties go to the topmost.
export function firstPlace() {
  const isKernel = (box) => boxes.kernel[box] >= 0;
  let first = 0;
  for (let box = 1; box < nBoxes; box++) {
    const order = isKernel(first) - isKernel(box) || left[box] - left[first] || top[box] - top[first];
    if (order < 0) first = box;
  }
  return nBoxes ? [left[first] + width[first] / 2, top[first] + height[first] / 2] : [0, 0];
}

// Makes room for open boxes: columns get wider, and boxes below move down.
export function arrange() {
  const nVertices = base.x.length;
  width = new Float64Array(nVertices);
  height = new Float64Array(nVertices).fill(BEND_HEIGHT);
  for (let box = 0; box < nBoxes; box++) {
    const places = open[box] ? DATA.expanded : DATA.collapsed;
    [width[box], height[box]] = [places.w[box], places.h[box]];
  }
  const pieces = [];
  for (let vertex = 0; vertex < nVertices; vertex++) {
    const columns = (pieces[base.piece[vertex]] ??= []);
    (columns[base.column[vertex]] ??= []).push(vertex);
  }
  [left, top, columnLeft, columnRight] =
    Array.from({ length: 4 }, () => new Float64Array(nVertices));
  extent = [0, 0];
  let [pieceLeft, rowTop, nextTop] = [0, 0, 0];
  for (const columns of pieces) {
    let [x, highest, lowest] = [0, Infinity, -Infinity];
    const tops = columns.map((column) => {
      column.sort((a, b) => base.y[a] - base.y[b] || a - b);
      const heights = column.map(spaced);
      const centers = settle(column.map((vertex) => base.y[vertex]), heights, BEND_GAP);
      return centers.map((y, i) => {
        highest = Math.min(highest, y - heights[i] / 2);
        lowest = Math.max(lowest, y + heights[i] / 2);
        return y - height[column[i]] / 2;
      });
    });
    const widths = columns.map((column) =>
      column.reduce((widest, vertex) => Math.max(widest, width[vertex]), 0));
    const total = widths.reduce((sum, each) => sum + each + gaps[0], -gaps[0]);
    if (pieceLeft > 0 && pieceLeft + total > base.rowWidth) [pieceLeft, rowTop] = [0, nextTop];
    columns.forEach((column, i) => {
      column.forEach((vertex, j) => {
        left[vertex] = pieceLeft + x + (widths[i] - width[vertex]) / 2;
        top[vertex] = rowTop + tops[i][j] - highest;
        columnLeft[vertex] = pieceLeft + x;
        columnRight[vertex] = pieceLeft + x + widths[i];
      });
      x += widths[i] + gaps[0];
    });
    extent = [Math.max(extent[0], pieceLeft + total), Math.max(extent[1], rowTop + lowest - highest)];
    pieceLeft += total + gaps[0];
    nextTop = Math.max(nextTop, rowTop + lowest - highest + gaps[2]);
  }
}

const spaced = (vertex) => height[vertex] + (vertex < nBoxes ? gaps[1] - BEND_GAP : 0);

// Centers closest to the wanted ones, in least squares, that keep their order and a gap between
// neighbors: as `settle` in rust/layout/src.
function settle(wanted, heights, gap) {
  const offsets = [];
  const pools = [];
  let offset = 0;
  wanted.forEach((y, i) => {
    if (i > 0) offset += (heights[i - 1] + heights[i]) / 2 + gap;
    offsets.push(offset);
    let pool = [y - offset, 1];
    while (pools.length && pools[pools.length - 1][0] > pool[0]) {
      const [mean, n] = pools.pop();
      pool = [(mean * n + pool[0] * pool[1]) / (n + pool[1]), n + pool[1]];
    }
    pools.push(pool);
  });
  const means = pools.flatMap(([mean, n]) => Array.from({ length: n }, () => mean));
  return means.map((mean, i) => mean + offsets[i]);
}
