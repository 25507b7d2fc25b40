// Mouse and touch: dragging, clicking, zooming by the wheel, and tooltips.
import { byId, canvas } from "./canvas.js";
import { choose, pointAt } from "./choice.js";
import { toggle } from "./folding.js";
import { thingAt } from "./hits.js";
import { paragraphs } from "./texts.js";
import { pan, zoom } from "./view.js";

const tip = byId("tip");
let drag = null;

canvas.addEventListener("pointerdown", (event) => {
  drag = { x: event.clientX, y: event.clientY, moved: false };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  if (drag) {
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (drag.moved || Math.hypot(dx, dy) > 3) {
      pan(dx, dy);
      drag = { x: event.clientX, y: event.clientY, moved: true };
      tip.hidden = true;
    }
    return;
  }
  hover(thingAt(event.clientX, event.clientY), event);
});
canvas.addEventListener("pointerup", (event) => {
  const wasClick = drag && !drag.moved;
  drag = null;
  if (!wasClick) return;
  const thing = thingAt(event.clientX, event.clientY);
  if (thing && thing.toggle) toggle(thing.box);
  else choose(thing);
});
canvas.addEventListener("pointercancel", () => { drag = null; });
canvas.addEventListener("dblclick", (event) => {
  const thing = thingAt(event.clientX, event.clientY);
  if (thing && thing.node === undefined && thing.box !== undefined && !thing.toggle) toggle(thing.box);
});
canvas.addEventListener("pointerleave", () => hover(null));
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const bounds = canvas.getBoundingClientRect();
  const pixels = event.deltaY * (event.deltaMode === 1 ? 16 : 1);
  zoom(Math.exp(-pixels / 400), event.clientX - bounds.left, event.clientY - bounds.top);
}, { passive: false });

function hover(thing, event) {
  pointAt(thing);
  canvas.classList.toggle("over", Boolean(thing));
  tip.hidden = !thing;
  if (!thing) return;
  tip.replaceChildren(...paragraphs(thing));
  const bounds = canvas.getBoundingClientRect();
  const [x, y] = [event.clientX - bounds.left, event.clientY - bounds.top];
  tip.style.left = `${Math.max(4, Math.min(x + 16, bounds.width - tip.offsetWidth - 8))}px`;
  const below = y + 16 + tip.offsetHeight < bounds.height;
  tip.style.top = `${below ? y + 16 : Math.max(4, y - tip.offsetHeight - 12)}px`;
}
