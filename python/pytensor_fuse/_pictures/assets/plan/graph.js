// The plan as data, from _pictures/script_data.py: nodes, the boxes that contain them, and edges.
//
// A box is a kernel, a node outside kernels, or several similar nodes with the same neighbors.
// Properties of nodes, boxes and edges are arrays, indexed by their positions.

export const { strings, nodes, boxes, edges } = DATA;
export const nNodes = nodes.box.length;
export const nBoxes = boxes.kernel.length;

// The roles of nodes in the plan: positions in DATA.roles.
export const [FUSED, ALONE, UNFUSABLE, INPUT, CONSTANT] = [0, 1, 2, 3, 4];

export const members = Array.from({ length: nBoxes }, () => []);
nodes.box.forEach((box, node) => members[box].push(node));

export const readsOf = Array.from({ length: nNodes }, () => []);
export const readersOf = Array.from({ length: nNodes }, () => []);
export const edgesInside = Array.from({ length: nBoxes }, () => []);
const between = new Map();
edges.source.forEach((source, edge) => {
  const target = edges.target[edge];
  readersOf[source].push(edge);
  readsOf[target].push(edge);
  const [from, to] = [nodes.box[source], nodes.box[target]];
  if (from === to) edgesInside[from].push(edge);
  else append(between, from * nBoxes + to, edge);
});

export const edgesBetween = (from, to) => between.get(from * nBoxes + to);
// Whether a box has several nodes, so that it can be opened and closed.
export const isGroup = (box) => members[box].length > 1;
export const op = (node) => strings[nodes.op[node]];
export const label = (node) => strings[nodes.label[node]];
export const listed = (positions) => positions.map((position) => strings[position]);

// Adds an item to the list that a map has under a key.
export function append(map, key, item) {
  const list = map.get(key);
  if (list) list.push(item);
  else map.set(key, [item]);
}
