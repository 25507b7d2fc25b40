// Descriptions of nodes, boxes and lines, for the panel and for tooltips.
import { ALONE, boxes, CONSTANT, edges, INPUT, isGroup, label, listed, nodes, op, strings, UNFUSABLE }
  from "./graph.js";
import { open } from "./layout.js";

export function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

export function paragraphs(thing) {
  if (thing.line) return lineParagraphs(thing.line);
  if (thing.node !== undefined) return nodeParagraphs(thing.node);
  return [element("div", strings[boxes.label[thing.box]], "head"),
    element("div", strings[boxes.caption[thing.box]], "faint")];
}

function nodeParagraphs(node) {
  const role = nodes.role[node];
  const parts = [element("div", op(node) || label(node), "head")];
  if (role === INPUT) parts.push(element("div", "input of the graph", "faint"));
  if (role === CONSTANT) parts.push(element("div", "constant", "faint"));
  const names = listed(nodes.names[node]);
  if (names.length && op(node)) parts.push(element("div", `name: ${names.join(", ")}`));
  for (const type of listed(nodes.types[node])) parts.push(element("div", type, "mono"));
  const constants = listed(nodes.constants[node]);
  if (constants.length) parts.push(element("div", `constants: ${constants.join(", ")}`));
  if (nodes.results[node].length) {
    parts.push(element("div", `result ${nodes.results[node].join(", ")} of the graph`));
  }
  if (role === UNFUSABLE || role === ALONE) parts.push(element("div", DATA.roles[role], "faint"));
  if (nodes.file[node] >= 0) {
    parts.push(element("div", `${strings[nodes.file[node]]}:${nodes.line[node]}`, "faint"));
    parts.push(element("code", strings[nodes.code[node]], "code"));
  }
  return parts;
}

// A line of one edge shows its ends and reason; one of several, each reason with its count.
function lineParagraphs(line) {
  const name = (box, node) =>
    isGroup(box) && !open[box]
      ? strings[boxes.label[box]].replace(/(kernel .*):.*/, "$1") : op(node) || label(node);
  const first = line.edges[0];
  const [from, to] = [name(line.from, edges.source[first]), name(line.to, edges.target[first])];
  const counts = new Map();
  for (const edge of line.edges) counts.set(reason(edge), (counts.get(reason(edge)) ?? 0) + 1);
  return [element("div", `${from} \u2192 ${to}`, "head"),
    ...[...counts].map(([text, n]) => element("div", n > 1 ? `${text} (${n} edges)` : text))];
}

// Why the ends of an edge do not share a kernel.
export function reason(edge) {
  const why = edges.why[edge];
  if (why < 0) return nodes.role[edges.source[edge]] === INPUT ? "reads an input" : "in the same kernel";
  const path = edges.path[edge];
  if (!path) return `not fused: ${strings[why]}`;
  const steps = path.map((node) => op(node) || label(node));
  // The last step of an abridged path comes after the omitted ones.
  if (edges.leftOut[edge]) steps.splice(-1, 0, `... (${edges.leftOut[edge]} more)`);
  return `not fused: ${strings[why]}: ${steps.join(" -> ")}`;
}
