// Painting the canvas: open boxes, lines over them, closed boxes and nodes over these.
import { canvas, context } from "./canvas.js";
import { chosen, hovered } from "./choice.js";
import { boxColors, colors, nodeColors } from "./colors.js";
import { boxes, edges, INPUT, isGroup, label, members, nBoxes, nodes, strings } from "./graph.js";
import { boxRectangle, nodeRectangle, open, toggleSquare } from "./layout.js";
import { allLines, lines } from "./lines.js";
import { foundNodes } from "./search.js";
import { BIG_TEXT, TEXT, view } from "./view.js";

// More bright lines than this would hide the things that they connect.
const MANY = 60;

export function paint() {
  const ratio = devicePixelRatio || 1;
  const [w, h] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
    [canvas.width, canvas.height] = [Math.round(w * ratio), Math.round(h * ratio)];
  }
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = colors.ground;
  context.fillRect(0, 0, canvas.width, canvas.height);
  const scale = view.scale * ratio;
  context.setTransform(scale, 0, 0, scale, view.x * ratio, view.y * ratio);
  const seen = [-view.x / view.scale, -view.y / view.scale,
    (w - view.x) / view.scale, (h - view.y) / view.scale];
  const isSeen = (x0, y0, x1, y1) =>
    x1 >= seen[0] && x0 <= seen[2] && y1 >= seen[1] && y0 <= seen[3];

  const inSight = [];
  for (let box = 0; box < nBoxes; box++) {
    const [x, y, width, height] = boxRectangle(box);
    if (isSeen(x, y, x + width, y + height)) inSight.push(box);
  }
  for (const box of inSight) if (open[box]) paintGround(box);
  paintLines(isSeen);
  for (const box of inSight) {
    if (open[box]) members[box].forEach(paintNode);
    else if (isGroup(box)) paintClosed(box);
    else paintNode(members[box][0]);
  }
}

function paintLines(isSeen) {
  const thin = Math.max(1, 0.55 / view.scale);
  context.lineWidth = thin;
  context.strokeStyle = colors.edge;
  // At small scales, thousands of opaque lines would hide the boxes.
  const afar = Math.min(0.6, 2000 / Math.max(lines.length, 1));
  context.globalAlpha = chosen ? 0.16 : view.scale < TEXT ? afar : 0.75;
  if (view.scale < 0.3) context.stroke(allLines);
  else {
    for (const each of lines) {
      if (isSeen(...each.bounds)) context.stroke(each.hidden ? each.stubs : each.path);
    }
  }
  context.globalAlpha = 1;
  const bright = new Set(chosen ? chosen.lines : []);
  if (hovered && hovered.line) bright.add(hovered.line);
  context.lineWidth = bright.size > MANY ? thin : Math.max(2, 1.6 / view.scale);
  if (bright.size > MANY) context.globalAlpha = 0.45;
  for (const each of bright) {
    context.strokeStyle = each.edges.some((edge) => edges.why[edge] >= 0) ? colors.bad : colors.accent;
    context.stroke(each.path);
    if (view.scale >= 0.25) paintHead(each);
  }
  context.globalAlpha = 1;
  if (view.scale >= TEXT && !chosen) {
    context.globalAlpha = 0.75;
    for (const each of lines) if (isSeen(...each.bounds)) paintHead(each);
    context.globalAlpha = 1;
  }
}

// The arrow head at the end of a line.
function paintHead(each) {
  const [x, y] = each.points[each.points.length - 1];
  context.fillStyle = chosen || hovered?.line === each ? context.strokeStyle : colors.edge;
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x - 6, y - 3);
  context.lineTo(x - 6, y + 3);
  context.fill();
}

function paintGround(box) {
  const [x, y, w, h] = boxRectangle(box);
  const [fill, , border] = boxColors(box);
  context.globalAlpha = isDim(box) ? 0.35 : 1;
  const ring = chosen && chosen.box === box && chosen.node === undefined ? colors.accent : null;
  context.fillStyle = fill;
  context.strokeStyle = border;
  context.lineWidth = Math.max(1.2, 0.8 / view.scale);
  context.beginPath();
  context.roundRect(x, y, w, h, 8);
  context.fill();
  context.stroke();
  if (ring) {
    context.strokeStyle = ring;
    context.lineWidth = Math.max(3, 2.5 / view.scale);
    context.stroke();
  }
  if (view.scale >= TEXT) {
    write(strings[boxes.label[box]], x + 10, y + 15, 11.5, border, "600");
    paintToggle(box, border);
  }
  context.globalAlpha = 1;
}

function paintClosed(box) {
  const [, fill, border] = boxColors(box);
  context.globalAlpha = isDim(box) ? 0.3 : 1;
  const [x, y, w, h] = boxRectangle(box);
  frame(x, y, w, h, 7, fill, border, ringOf(undefined, box));
  if (view.scale >= TEXT) {
    write(strings[boxes.label[box]], x + 9, y + 16, 12, colors.text, "600");
    write(strings[boxes.caption[box]], x + 9, y + 31, 11, colors.faint);
    paintToggle(box, border);
  } else if (view.scale >= BIG_TEXT) {
    writeBig(strings[boxes.label[box]].replace(/^kernel |\{.*/g, ""), x, y, w, h, colors.text);
  }
  if (boxes.results[box]) paintResult(x, y, w, h);
  context.globalAlpha = 1;
}

function paintNode(node) {
  const box = nodes.box[node];
  const [x, y, w, h] = nodeRectangle(node);
  const [fill, border] = nodeColors(node);
  context.globalAlpha = isDim(box, node) ? 0.3 : 1;
  frame(x, y, w, h, nodes.role[node] === INPUT ? h / 2 : 5, fill, border, ringOf(node, box));
  if (view.scale >= TEXT) {
    write(label(node), x + 9, y + 16, 12, colors.text);
    write(strings[nodes.caption[node]], x + 9, y + 31, 11, colors.faint);
  } else if (view.scale >= BIG_TEXT) {
    writeBig(label(node).replace(/\{.*/, ""), x, y, w, h, colors.text);
  }
  if (nodes.results[node].length) paintResult(x, y, w, h);
  context.globalAlpha = 1;
}

// The button of a box: a plus or a minus.
function paintToggle(box, color) {
  const [x, y, side] = toggleSquare(box);
  context.strokeStyle = color;
  context.lineWidth = 1.2;
  context.beginPath();
  context.roundRect(x, y, side, side, 3);
  context.moveTo(x + 3, y + side / 2);
  context.lineTo(x + side - 3, y + side / 2);
  if (!open[box]) {
    context.moveTo(x + side / 2, y + 3);
    context.lineTo(x + side / 2, y + side - 3);
  }
  context.stroke();
}

// A thick right end marks results of the whole graph.
function paintResult(x, y, w, h) {
  context.fillStyle = colors.text;
  context.fillRect(x + w - 3, y + 3, 4, h - 6);
}

function isDim(box, node) {
  if (!chosen) return false;
  return node === undefined || !open[box] ? !chosen.boxes.has(box) : !chosen.nodes.has(node);
}

// The color of the ring around a chosen or found thing.
function ringOf(node, box) {
  if (chosen && (node !== undefined ? chosen.node === node : chosen.box === box)) return colors.accent;
  const isFound = node !== undefined && (open[box] || !isGroup(box))
    ? foundNodes.has(node) : members[box].some((member) => foundNodes.has(member));
  return foundNodes.size && isFound ? colors.found : null;
}

function frame(x, y, w, h, radius, fill, border, ring) {
  context.fillStyle = fill;
  context.strokeStyle = border;
  if (view.scale < BIG_TEXT) {
    // Too small for a border, so that the fill has the border's color.
    context.fillStyle = border;
    context.fillRect(x, y, w, h);
  } else {
    context.lineWidth = 1.2;
    context.beginPath();
    context.roundRect(x, y, w, h, radius);
    context.fill();
    context.stroke();
  }
  if (ring) {
    context.globalAlpha = 1;
    context.strokeStyle = ring;
    context.lineWidth = Math.max(3, 2.5 / view.scale);
    context.beginPath();
    const out = context.lineWidth / 2 + 1;
    context.roundRect(x - out, y - out, w + 2 * out, h + 2 * out, radius + 2);
    context.stroke();
  }
}

function write(text, x, y, size, color, weight = "") {
  context.fillStyle = color;
  context.font = `${weight} ${size}px system-ui, sans-serif`;
  context.fillText(text, x, y);
}

function writeBig(text, x, y, w, h, color) {
  const size = Math.min(19, h * 0.7, 1.6 * (w - 6) / Math.max(text.length, 1));
  write(text, x + 5, y + h / 2 + size * 0.36, size, color);
}
