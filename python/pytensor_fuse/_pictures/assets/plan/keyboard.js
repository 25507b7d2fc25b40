// Keyboard control: everything that the mouse can do.
import { byId, canvas } from "./canvas.js";
import { choose, chosen, visit } from "./choice.js";
import { toggle, toggleAll } from "./folding.js";
import { edges, members, nNodes, readersOf, readsOf } from "./graph.js";
import { search, step } from "./search.js";
import { fit, pan, zoom } from "./view.js";

const keys = {
  ArrowLeft: () => pan(80, 0),
  ArrowRight: () => pan(-80, 0),
  ArrowUp: () => pan(0, 80),
  ArrowDown: () => pan(0, -80),
  "+": () => zoom(1.25),
  "=": () => zoom(1.25),
  "-": () => zoom(0.8),
  f: fit,
  e: () => toggleAll(true),
  c: () => toggleAll(false),
  Enter: () => {
    if (chosen && chosen.node === undefined && chosen.box !== undefined) toggle(chosen.box);
  },
  "[": () => walk(readsOf, edges.source),
  "]": () => walk(readersOf, edges.target),
  Escape: () => choose(null),
};

// From the chosen node to its first input or first reader; from nothing to the first node.
function walk(edgesOf, ends) {
  if (!nNodes) return;
  if (!chosen || chosen.node === undefined) {
    visit({ node: chosen?.box === undefined ? 0 : members[chosen.box][0] });
  } else if (edgesOf[chosen.node].length) visit({ node: ends[edgesOf[chosen.node][0]] });
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const inField = event.target === byId("search");
  if (event.key === "/" && !inField) {
    event.preventDefault();
    byId("search").focus();
    return;
  }
  if (inField) {
    if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") {
      byId("search").value = "";
      search("");
      canvas.focus();
    }
    return;
  }
  // A button of the toolbar keeps the focus after a click, and handles Enter itself.
  const inTools = event.target.closest?.(".tools") && event.key !== "Enter";
  if (event.target !== canvas && event.target !== document.body && !inTools) return;
  const act = keys[event.key];
  if (act) {
    event.preventDefault();
    act();
  }
});
