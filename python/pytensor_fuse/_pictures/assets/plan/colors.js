// The colors of the page's palette, read from its style sheet.
import { repaint } from "./canvas.js";
import { ALONE, boxes, FUSED, INPUT, members, nodes } from "./graph.js";

const NAMES = ["ground", "text", "faint", "accent", "bad", "edge", "found", "unfusable", "unfusable-border",
  "alone", "alone-border", "input", "input-border", "kernel-hue", "kernel-hue-step", "kernel-ground",
  "kernel-fill", "kernel-border"];

export let colors = readColors();

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  colors = readColors();
  repaint();
});

function readColors() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// The ground, fill and border of a box.
export function boxColors(box) {
  if (boxes.kernel[box] < 0) return [colors.ground, ...nodeColors(members[box][0])];
  const hue = (boxes.kernel[box] * colors["kernel-hue-step"] + Number(colors["kernel-hue"])) % 360;
  return ["ground", "fill", "border"].map((part) => `hsl(${hue} ${colors[`kernel-${part}`]})`);
}

// The fill and border of a node.
export function nodeColors(node) {
  const role = nodes.role[node];
  if (role === FUSED) {
    const [, fill, border] = boxColors(nodes.box[node]);
    return [fill, border];
  }
  const name = role === ALONE ? "alone" : role >= INPUT ? "input" : "unfusable";
  return [colors[name], colors[`${name}-border`]];
}
