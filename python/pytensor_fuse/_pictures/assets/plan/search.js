// Search for nodes by op, label, name or type.
import { byId } from "./canvas.js";
import { choose, visit } from "./choice.js";
import { toggle } from "./folding.js";
import { isGroup, label, listed, members, nNodes, nodes, op } from "./graph.js";
import { open } from "./layout.js";

// A kernel of more nodes than this stays closed when a node in it is found, to show where it is.
const OPENED = 400;

export let found = [];
export let foundNodes = new Set();
export let current = -1;
const texts = Array.from({ length: nNodes }, (_, node) =>
  [op(node), label(node), ...listed(nodes.names[node]), ...listed(nodes.types[node])]
    .join("\n").toLowerCase());

export function search(text) {
  const wanted = text.trim().toLowerCase();
  found = wanted ? texts.flatMap((each, node) => (each.includes(wanted) ? [node] : [])) : [];
  foundNodes = new Set(found);
  current = -1;
  if (found.length) step(1);
  else {
    byId("found").textContent = wanted ? "nothing found" : "";
    choose(null);
  }
}

export function step(by) {
  if (!found.length) return;
  current = (current + by + found.length) % found.length;
  byId("found").textContent = `${current + 1} of ${found.length}`;
  const node = found[current];
  const box = nodes.box[node];
  if (isGroup(box) && !open[box] && members[box].length <= OPENED) toggle(box);
  visit({ node });
}
