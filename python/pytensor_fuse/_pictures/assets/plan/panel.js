// The panel, which describes the chosen thing and links to its neighbors.
import { byId } from "./canvas.js";
import { chosen, visit, whenChosen } from "./choice.js";
import { toggle } from "./folding.js";
import { boxes, edges, isGroup, label, listed, members, nodes, op, readersOf, readsOf, strings }
  from "./graph.js";
import { open } from "./layout.js";
import { element, paragraphs, reason } from "./texts.js";

// The maximum number of entries in a list: the panel is for reading.
const SHOWN_ENTRIES = 100;

const panel = byId("panel");
const help = [...panel.childNodes];

whenChosen(() => {
  panel.replaceChildren(...(chosen ? description() : help));
  if (chosen) panel.scrollTop = 0;
});

function description() {
  const parts = paragraphs(chosen);
  if (chosen.line) {
    const ends = new Set(chosen.line.edges.flatMap((edge) => [edges.source[edge], edges.target[edge]]));
    parts.push(...nodeList("Its ends", [...ends]));
    const path = chosen.line.edges.map((edge) => edges.path[edge]).find((steps) => steps);
    if (path) parts.push(...nodeList("The path between", path));
  } else if (chosen.node !== undefined) {
    const box = nodes.box[chosen.node];
    if (isGroup(box)) {
      parts.push(...list("In", [box], () => entry(strings[boxes.label[box]], () => visit({ box }))));
    }
    parts.push(...edgeList("Reads", readsOf[chosen.node], edges.source));
    parts.push(...edgeList("Read by", readersOf[chosen.node], edges.target));
  } else {
    const box = chosen.box;
    parts.push(button(open[box] ? "Collapse" : "Expand", () => toggle(box)));
    parts.push(...nodeList("Nodes", members[box]));
  }
  return parts;
}

function button(text, act) {
  const made = element("button", text);
  made.addEventListener("click", act);
  return made;
}

function entry(text, act) {
  const item = element("li");
  item.append(button(text, act));
  return item;
}

function list(title, items, make) {
  if (!items.length) return [];
  const entries = element("ul");
  entries.append(...items.slice(0, SHOWN_ENTRIES).map(make));
  const rest = items.length - SHOWN_ENTRIES;
  if (rest > 0) entries.append(element("li", `and ${rest} more`, "faint"));
  return [element("h3", items.length > 1 ? `${title} (${items.length})` : title), entries];
}

function nodeList(title, items) {
  return list(title, items, (node) => entry(nodeName(node), () => visit({ node })));
}

function edgeList(title, items, ends) {
  return list(title, items, (edge) => {
    const item = entry(nodeName(ends[edge]), () => visit({ node: ends[edge] }));
    if (edges.why[edge] >= 0) item.append(element("div", reason(edge), "faint"));
    return item;
  });
}

function nodeName(node) {
  return [op(node) || label(node), ...listed(op(node) ? nodes.names[node] : [])].join(" \u00b7 ");
}
