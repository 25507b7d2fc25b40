// The chosen thing, and the one under the pointer.
//
// Things are {node}, {box} (of several nodes) or {line}.
import { repaint } from "./canvas.js";
import { edges, members, nNodes, nodes } from "./graph.js";
import { boxRectangle, nodeRectangle } from "./layout.js";
import { lines } from "./lines.js";
import { center } from "./view.js";

// With the related lines, boxes and nodes.
export let chosen = null;
export let hovered = null;
const listeners = [];

export function whenChosen(listener) {
  listeners.push(listener);
}

export function choose(thing) {
  chosen = thing && { ...thing, lines: new Set(), boxes: new Set(), nodes: new Set() };
  if (chosen) light(chosen);
  for (const listener of listeners) listener();
  repaint();
}

// Chooses a node or a box and centers it.
export function visit(thing) {
  choose(thing);
  center(thing.node === undefined ? boxRectangle(thing.box) : nodeRectangle(thing.node));
}

export function pointAt(thing) {
  const changed = (thing?.line ?? null) !== (hovered?.line ?? null);
  hovered = thing;
  if (changed) repaint();
}

function light(thing) {
  const addNode = (node) => {
    thing.nodes.add(node);
    thing.boxes.add(nodes.box[node]);
  };
  if (thing.line) {
    thing.lines.add(thing.line);
    // The steps of the path that would close the cycle.
    const steps = new Set();
    for (const edge of thing.line.edges) {
      const path = edges.path[edge] ?? [];
      [edges.source[edge], edges.target[edge], ...path].forEach(addNode);
      path.slice(1).forEach((node, i) => steps.add(path[i] * nNodes + node));
    }
    const isStep = (edge) => steps.has(edges.source[edge] * nNodes + edges.target[edge]);
    for (const each of lines) {
      if (steps.size && each.edges.some(isStep)) thing.lines.add(each);
    }
    return;
  }
  const isOurs = (node) =>
    thing.node === undefined ? nodes.box[node] === thing.box : node === thing.node;
  for (const each of lines) {
    for (const edge of each.edges) {
      const ends = [edges.source[edge], edges.target[edge]];
      if (!ends.some(isOurs)) continue;
      thing.lines.add(each);
      ends.forEach(addNode);
    }
  }
  (thing.node === undefined ? members[thing.box] : [thing.node]).forEach(addNode);
}
