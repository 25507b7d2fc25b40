// The picture of a fusion plan: a canvas, and a panel that describes the chosen thing.
import "./keyboard.js";
import "./panel.js";
import "./pointer.js";
import { byId, canvas, paintWith, repaint } from "./canvas.js";
import { chosen } from "./choice.js";
import { rearrange, toggleAll } from "./folding.js";
import { boxRectangle, height, left, nodeRectangle, open, openAll, toggleSquare, top, width } from "./layout.js";
import { lines } from "./lines.js";
import { overviewFrame, paintOverview } from "./overview.js";
import { paint } from "./painting.js";
import { current, found, search } from "./search.js";
import { begin, fit, toScreen, view, zoom } from "./view.js";

byId("search").addEventListener("input", (event) => search(event.target.value));
byId("expand").addEventListener("click", () => toggleAll(true));
byId("collapse").addEventListener("click", () => toggleAll(false));
byId("fit").addEventListener("click", fit);
byId("in").addEventListener("click", () => zoom(1.4));
byId("out").addEventListener("click", () => zoom(1 / 1.4));
new ResizeObserver(() => {
  if (view.isFitted) fit();
  else if (view.isBeginning) begin();
  else repaint();
}).observe(canvas);

paintWith(() => {
  paint();
  paintOverview();
});
openAll(DATA.startsOpen);
rearrange();
begin();

// Positions on the screen, and the state of the page: for tests and for the console.
globalThis.plan = {
  nodeAt: (node) => toScreen(nodeRectangle(node)),
  boxAt: (box) => toScreen(boxRectangle(box)),
  toggleAt: (box) => toScreen([...toggleSquare(box), 12]),
  lineAt: (edge) => {
    const line = lines.find((each) => each.edges.includes(edge));
    return line && toScreen([...(line.hidden ? line.stubEnd : line.middle), 0, 0]);
  },
  places: () => ({ left: [...left], top: [...top], width: [...width], height: [...height] }),
  state: () => ({ open: [...open], node: chosen?.node, box: chosen?.box, line: chosen?.line?.edges,
    lit: [...(chosen?.lines ?? [])].flatMap((each) => each.edges),
    found, current, scale: view.scale, view: [view.x, view.y],
    overview: byId("overview").hidden ? null : overviewFrame(), nLines: lines.length }),
  fit, zoom, paint,
};
