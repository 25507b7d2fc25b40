"use strict";
// The picture of a fusion plan: a canvas to look at, a panel that says what was chosen.
//
// DATA comes from _plan_page.py. Boxes are kernels and nodes that are in none; bends are where long
// edges pass a column. A vertex is a box or a bend, in this order.
(() => {
  const { strings, nodes, boxes, edges, gaps } = DATA;
  const nNodes = nodes.box.length;
  const nBoxes = boxes.kernel.length;
  // As in rust/core/src/layout: nodes carry the rest of their gap with them.
  const [BEND_HEIGHT, BEND_GAP] = [4, 4];
  const spaced = (vertex) => height[vertex] + (vertex < nBoxes ? gaps[1] - BEND_GAP : 0);
  const [FUSED, ALONE, UNFUSABLE, INPUT, CONSTANT] = [0, 1, 2, 3, 4];
  const byId = (id) => document.getElementById(id);
  const canvas = byId("picture");
  const context = canvas.getContext("2d");

  // The graph ---------------------------------------------------------------------------------

  const members = Array.from({ length: nBoxes }, () => []);
  nodes.box.forEach((box, node) => members[box].push(node));
  const readsOf = Array.from({ length: nNodes }, () => []);
  const readersOf = Array.from({ length: nNodes }, () => []);
  const edgesBetween = new Map();
  const edgesInside = Array.from({ length: nBoxes }, () => []);
  edges.source.forEach((source, edge) => {
    const target = edges.target[edge];
    readersOf[source].push(edge);
    readsOf[target].push(edge);
    const [from, to] = [nodes.box[source], nodes.box[target]];
    if (from === to) edgesInside[from].push(edge);
    else append(edgesBetween, from * nBoxes + to, edge);
  });
  // A box of several nodes: a kernel, or nodes that are alike and have the same neighbours.
  const isGroup = (box) => members[box].length > 1;
  const op = (node) => strings[nodes.op[node]];
  const label = (node) => strings[nodes.label[node]];
  const texts = Array.from({ length: nNodes }, (_, node) =>
    [op(node), label(node), ...listed(nodes.names[node]), ...listed(nodes.types[node])]
      .join("\n").toLowerCase());

  function append(map, key, item) {
    const list = map.get(key);
    if (list) list.push(item);
    else map.set(key, [item]);
  }
  function listed(positions) {
    return positions.map((position) => strings[position]);
  }

  // Places ------------------------------------------------------------------------------------

  // Which kernels are open, and the places that they start from: all closed, or all open.
  const open = new Array(nBoxes).fill(false);
  let base = DATA.collapsed;
  // Left, top, width and height of each vertex, and left and right end of its column.
  let left, top, width, height, columnLeft, columnRight, extent;

  // Centres nearest to the wanted ones that keep their order and leave a gap between neighbours:
  // least squares, as `settle` in rust/core/src/layout.
  function settle(wanted, heights, gap) {
    const offsets = [];
    const pools = [];
    let offset = 0;
    wanted.forEach((y, i) => {
      if (i > 0) offset += (heights[i - 1] + heights[i]) / 2 + gap;
      offsets.push(offset);
      let pool = [y - offset, 1];
      while (pools.length && pools[pools.length - 1][0] > pool[0]) {
        const [mean, n] = pools.pop();
        pool = [(mean * n + pool[0] * pool[1]) / (n + pool[1]), n + pool[1]];
      }
      pools.push(pool);
    });
    const means = pools.flatMap(([mean, n]) => new Array(n).fill(mean));
    return means.map((mean, i) => mean + offsets[i]);
  }

  // Makes room for what is open: columns get wider, what is below moves down.
  function arrange() {
    const nVertices = base.x.length;
    width = new Float64Array(nVertices);
    height = new Float64Array(nVertices).fill(BEND_HEIGHT);
    for (let box = 0; box < nBoxes; box++) {
      const places = open[box] ? DATA.expanded : DATA.collapsed;
      [width[box], height[box]] = [places.w[box], places.h[box]];
    }
    const pieces = [];
    for (let vertex = 0; vertex < nVertices; vertex++) {
      const columns = (pieces[base.piece[vertex]] ??= []);
      (columns[base.column[vertex]] ??= []).push(vertex);
    }
    [left, top, columnLeft, columnRight] =
      Array.from({ length: 4 }, () => new Float64Array(nVertices));
    extent = [0, 0];
    let [pieceLeft, rowTop, nextTop] = [0, 0, 0];
    for (const columns of pieces) {
      let [x, highest, lowest] = [0, Infinity, -Infinity];
      const tops = columns.map((column) => {
        column.sort((a, b) => base.y[a] - base.y[b] || a - b);
        const heights = column.map(spaced);
        const centres = settle(column.map((vertex) => base.y[vertex]), heights, BEND_GAP);
        return centres.map((y, i) => {
          highest = Math.min(highest, y - heights[i] / 2);
          lowest = Math.max(lowest, y + heights[i] / 2);
          return y - height[column[i]] / 2;
        });
      });
      const widths = columns.map((column) =>
        column.reduce((widest, vertex) => Math.max(widest, width[vertex]), 0));
      const total = widths.reduce((sum, each) => sum + each + gaps[0], -gaps[0]);
      if (pieceLeft > 0 && pieceLeft + total > base.rowWidth) [pieceLeft, rowTop] = [0, nextTop];
      columns.forEach((column, i) => {
        column.forEach((vertex, j) => {
          left[vertex] = pieceLeft + x + (widths[i] - width[vertex]) / 2;
          top[vertex] = rowTop + tops[i][j] - highest;
          columnLeft[vertex] = pieceLeft + x;
          columnRight[vertex] = pieceLeft + x + widths[i];
        });
        x += widths[i] + gaps[0];
      });
      extent = [Math.max(extent[0], pieceLeft + total), Math.max(extent[1], rowTop + lowest - highest)];
      pieceLeft += total + gaps[0];
      nextTop = Math.max(nextTop, rowTop + lowest - highest + gaps[2]);
    }
    buildLines();
  }

  // The rectangle of a node: its own in an open kernel, else that of its box.
  function nodeRectangle(node) {
    const box = nodes.box[node];
    if (!isGroup(box) || !open[box]) return [left[box], top[box], width[box], height[box]];
    const [x, y, w, h] = nodes.inner.slice(4 * node, 4 * node + 4);
    return [left[box] + x, top[box] + y, w, h];
  }

  // Lines -------------------------------------------------------------------------------------

  // What is drawn for edges: those between the same two rectangles are one line.
  let lines = [];
  let allLines = new Path2D();

  function buildLines() {
    lines = [];
    DATA.lines.forEach(([from, to], i) => {
      const [first, last] = base.bends[i];
      const bends = [];
      for (let bend = first; bend < last; bend++) {
        bends.push([columnLeft[bend], top[bend] + BEND_HEIGHT / 2],
          [columnRight[bend], top[bend] + BEND_HEIGHT / 2]);
      }
      addLines(from, to, bends, false);
    });
    for (const [from, to] of DATA.hidden) addLines(from, to, [], true);
    for (let box = 0; box < nBoxes; box++) {
      if (open[box]) edgesInside[box].forEach((edge) => lines.push(line([edge], [], false)));
    }
    allLines = new Path2D();
    for (const each of lines) allLines.addPath(each.hidden ? each.stubs : each.path);
  }

  // Of an edge that is drawn whole only when it is chosen, its two ends.
  const STUB = 12;

  function stubs(points) {
    const path = new Path2D();
    const [[x0, y0], [x1, y1]] = [points[0], points[points.length - 1]];
    path.moveTo(x0, y0);
    path.lineTo(x0 + STUB, y0);
    path.arc(x0 + STUB, y0, 1, 0, 7);
    path.moveTo(x1 - STUB, y1);
    path.arc(x1 - STUB, y1, 1, 0, 7);
    path.lineTo(x1, y1);
    return path;
  }

  function addLines(from, to, bends, hidden) {
    const groups = new Map();
    for (const edge of edgesBetween.get(from * nBoxes + to)) {
      const source = open[from] ? edges.source[edge] : 0;
      const target = open[to] ? edges.target[edge] : 0;
      append(groups, source * nNodes + target, edge);
    }
    for (const group of groups.values()) lines.push(line(group, bends, hidden));
  }

  function line(group, bends, hidden) {
    const [source, target] = [edges.source[group[0]], edges.target[group[0]]];
    const [from, to] = [nodes.box[source], nodes.box[target]];
    const [sx, sy, sw, sh] = nodeRectangle(source);
    const [tx, ty, , th] = nodeRectangle(target);
    const points = [[sx + sw, sy + sh / 2]];
    if (from !== to) {
      points.push([columnRight[from], sy + sh / 2], ...bends, [columnLeft[to], ty + th / 2]);
    }
    points.push([tx, ty + th / 2]);
    const path = new Path2D();
    path.moveTo(...points[0]);
    const bounds = [Infinity, Infinity, -Infinity, -Infinity];
    points.forEach(([x, y], i) => {
      bounds[0] = Math.min(bounds[0], x);
      bounds[1] = Math.min(bounds[1], y);
      bounds[2] = Math.max(bounds[2], x);
      bounds[3] = Math.max(bounds[3], y);
      if (i === 0) return;
      const [px, py] = points[i - 1];
      if (py === y) path.lineTo(x, y);
      else {
        const reach = Math.max((x - px) / 2, 20);
        path.bezierCurveTo(px + reach, py, x - reach, y, x, y);
      }
    });
    const middle = points[Math.floor(points.length / 2)];
    const before = points[Math.floor(points.length / 2) - 1];
    return { edges: group, from, to, hidden, path, stubs: hidden ? stubs(points) : null, bounds, points,
      middle: [(middle[0] + before[0]) / 2, (middle[1] + before[1]) / 2],
      stubEnd: [points[points.length - 1][0] - STUB / 2, points[points.length - 1][1]] };
  }

  // What is chosen ----------------------------------------------------------------------------

  // Things are {node}, {box} (a kernel) or {line}; `chosen` also has what goes with it.
  let chosen = null;
  let hovered = null;
  let found = [];
  let current = -1;
  let foundNodes = new Set();

  function choose(thing) {
    chosen = thing && { ...thing, lines: new Set(), boxes: new Set(), nodes: new Set() };
    if (chosen) light(chosen);
    describe();
    repaint();
  }

  function light(thing) {
    const addNode = (node) => { thing.nodes.add(node); thing.boxes.add(nodes.box[node]); };
    if (thing.line) {
      thing.lines.add(thing.line);
      // The steps of the path that makes it a cycle.
      const steps = new Set();
      for (const edge of thing.line.edges) {
        const path = edges.path[edge] ?? [];
        [edges.source[edge], edges.target[edge], ...path].forEach(addNode);
        path.slice(1).forEach((node, i) => steps.add(path[i] * nNodes + node));
      }
      for (const each of lines) {
        const isStep = (edge) => steps.has(edges.source[edge] * nNodes + edges.target[edge]);
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

  function toggle(box) {
    const x = left[box], y = top[box];
    open[box] = !open[box];
    arrange();
    // What was clicked stays under the pointer.
    view.x += (x - left[box]) * view.scale;
    view.y += (y - top[box]) * view.scale;
    view.isFitted = false;
    choose({ box });
  }

  function setAll(state) {
    for (let box = 0; box < nBoxes; box++) open[box] = state && isGroup(box);
    base = state ? DATA.expanded : DATA.collapsed;
    arrange();
    fit();
    choose(null);
  }

  // View --------------------------------------------------------------------------------------

  // `isFitted` until somebody moves: then the picture follows the size of the window, which a frame
  // may not have when this runs.
  const view = { scale: 1, x: 0, y: 0, isFitted: true };
  // What does not fit at that scale is shown as a whole nevertheless, and no smaller.
  const SMALLEST = 0.01;
  const LARGEST = 4;
  // Below this scale only one text is written on a box, as large as fits; then none.
  const TEXT = 0.45;
  const BIG_TEXT = 0.16;

  // The scale at which all is seen; a frame that has no size yet counts as a small one.
  function fitting() {
    const [w, h] = [Math.max(canvas.clientWidth - 48, 20), Math.max(canvas.clientHeight - 84, 20)];
    return Math.min(w / Math.max(extent[0], 1), h / Math.max(extent[1], 1), 1.25);
  }

  function fit() {
    const [w, h] = [canvas.clientWidth, canvas.clientHeight - 36];
    view.scale = fitting();
    view.x = (w - extent[0] * view.scale) / 2;
    view.y = (h - extent[1] * view.scale) / 2;
    view.isFitted = true;
    repaint();
  }

  function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
    const smallest = Math.min(SMALLEST, fitting());
    const scale = Math.min(Math.max(view.scale * factor, smallest), LARGEST);
    view.x = x - (x - view.x) * scale / view.scale;
    view.y = y - (y - view.y) * scale / view.scale;
    view.scale = scale;
    view.isFitted = false;
    repaint();
  }

  function centre([x, y, w, h]) {
    view.scale = Math.max(view.scale, 0.8);
    view.x = canvas.clientWidth / 2 - (x + w / 2) * view.scale;
    view.y = canvas.clientHeight / 2 - (y + h / 2) * view.scale;
    view.isFitted = false;
    repaint();
  }

  // Painting ----------------------------------------------------------------------------------

  const dark = matchMedia("(prefers-color-scheme: dark)");
  let colours = {};

  function readColours() {
    const style = getComputedStyle(document.documentElement);
    const names = ["ground", "panel", "line", "text", "faint", "accent", "bad", "edge", "found",
      "unfusable", "unfusable-line", "alone", "alone-line", "input", "input-line"];
    colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }

  // Neighbours in the plan get hues that are far apart.
  function boxColours(box) {
    if (boxes.kernel[box] < 0) return [colours.ground, ...nodeColours(members[box][0])];
    const hue = (boxes.kernel[box] * 137.508 + 205) % 360;
    return dark.matches
      ? [`hsl(${hue} 32% 17%)`, `hsl(${hue} 34% 30%)`, `hsl(${hue} 50% 62%)`]
      : [`hsl(${hue} 62% 95%)`, `hsl(${hue} 62% 86%)`, `hsl(${hue} 48% 42%)`];
  }

  function nodeColours(node) {
    const kind = nodes.kind[node];
    if (kind === FUSED) {
      const [, fill, stroke] = boxColours(nodes.box[node]);
      return [fill, stroke];
    }
    const name = kind === ALONE ? "alone" : kind >= INPUT ? "input" : "unfusable";
    return [colours[name], colours[`${name}-line`]];
  }

  let isWaiting = false;
  function repaint() {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => { isWaiting = false; paint(); });
  }

  function paint() {
    const ratio = devicePixelRatio || 1;
    const [w, h] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
      [canvas.width, canvas.height] = [Math.round(w * ratio), Math.round(h * ratio)];
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = colours.ground;
    context.fillRect(0, 0, canvas.width, canvas.height);
    const scale = view.scale * ratio;
    context.setTransform(scale, 0, 0, scale, view.x * ratio, view.y * ratio);
    const seen = [-view.x / view.scale, -view.y / view.scale,
      (w - view.x) / view.scale, (h - view.y) / view.scale];
    const isSeen = (x0, y0, x1, y1) =>
      x1 >= seen[0] && x0 <= seen[2] && y1 >= seen[1] && y0 <= seen[3];

    const inSight = [];
    for (let box = 0; box < nBoxes; box++) {
      if (isSeen(left[box], top[box], left[box] + width[box], top[box] + height[box])) inSight.push(box);
    }
    for (const box of inSight) if (open[box]) paintGround(box);
    paintLines(isSeen);
    for (const box of inSight) {
      if (open[box]) members[box].forEach(paintNode);
      else if (isGroup(box)) paintClosed(box);
      else paintNode(members[box][0]);
    }
  }

  const MANY = 60;

  function paintLines(isSeen) {
    const thin = Math.max(1, 0.55 / view.scale);
    context.lineWidth = thin;
    context.strokeStyle = colours.edge;
    // From afar thousands of lines would hide the boxes.
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
    // Very many would hide what they lead to.
    context.lineWidth = bright.size > MANY ? thin : Math.max(2, 1.6 / view.scale);
    if (bright.size > MANY) context.globalAlpha = 0.45;
    for (const each of bright) {
      context.strokeStyle = each.edges.some((edge) => edges.why[edge] >= 0) ? colours.bad : colours.accent;
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

  // The head of an arrow, at the end of a line.
  function paintHead(each) {
    const [x, y] = each.points[each.points.length - 1];
    context.fillStyle = chosen || hovered?.line === each ? context.strokeStyle : colours.edge;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x - 6, y - 3);
    context.lineTo(x - 6, y + 3);
    context.fill();
  }

  function isDim(box, node) {
    if (!chosen) return false;
    return node === undefined || !open[box] ? !chosen.boxes.has(box) : !chosen.nodes.has(node);
  }

  function frame(x, y, w, h, radius, fill, stroke, ring) {
    context.fillStyle = fill;
    context.strokeStyle = stroke;
    if (view.scale < BIG_TEXT) {
      // Too small for a border: its colour is what is seen from afar.
      context.fillStyle = stroke;
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

  function write(text, x, y, size, colour, weight = "") {
    context.fillStyle = colour;
    context.font = `${weight} ${size}px system-ui, sans-serif`;
    context.fillText(text, x, y);
  }

  function writeBig(text, x, y, w, h, colour) {
    const size = Math.min(19, h * 0.7, 1.6 * (w - 6) / Math.max(text.length, 1));
    write(text, x + 5, y + h / 2 + size * 0.36, size, colour);
  }

  function ringOf(node, box) {
    if (chosen && (node !== undefined ? chosen.node === node : chosen.box === box)) return colours.accent;
    const isFound = node !== undefined && (open[box] || !isGroup(box))
      ? foundNodes.has(node) : members[box].some((member) => foundNodes.has(member));
    return foundNodes.size && isFound ? colours.found : null;
  }

  function paintGround(box) {
    const [fill, , stroke] = boxColours(box);
    context.globalAlpha = isDim(box) ? 0.35 : 1;
    const ring = chosen && chosen.box === box && chosen.node === undefined ? colours.accent : null;
    context.fillStyle = fill;
    context.strokeStyle = stroke;
    context.lineWidth = Math.max(1.2, 0.8 / view.scale);
    context.beginPath();
    context.roundRect(left[box], top[box], width[box], height[box], 8);
    context.fill();
    context.stroke();
    if (ring) {
      context.strokeStyle = ring;
      context.lineWidth = Math.max(3, 2.5 / view.scale);
      context.stroke();
    }
    if (view.scale >= TEXT) {
      write(strings[boxes.label[box]], left[box] + 10, top[box] + 15, 11.5, stroke, "600");
      paintToggle(box, stroke);
    }
    context.globalAlpha = 1;
  }

  function paintClosed(box) {
    const [, fill, stroke] = boxColours(box);
    context.globalAlpha = isDim(box) ? 0.3 : 1;
    const [x, y, w, h] = [left[box], top[box], width[box], height[box]];
    frame(x, y, w, h, 7, fill, stroke, ringOf(undefined, box));
    if (view.scale >= TEXT) {
      write(strings[boxes.label[box]], x + 9, y + 16, 12, colours.text, "600");
      write(strings[boxes.caption[box]], x + 9, y + 31, 11, colours.faint);
      paintToggle(box, stroke);
    } else if (view.scale >= BIG_TEXT) {
      writeBig(strings[boxes.label[box]].replace(/^kernel |\{.*/g, ""), x, y, w, h, colours.text);
    }
    if (boxes.results[box]) paintResult(x, y, w, h);
    context.globalAlpha = 1;
  }

  // A plus or a minus in the corner of a kernel.
  function paintToggle(box, colour) {
    const [x, y, side] = toggleSquare(box);
    context.strokeStyle = colour;
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

  function toggleSquare(box) {
    return [left[box] + width[box] - 17, top[box] + 5, 12];
  }

  function paintNode(node) {
    const box = nodes.box[node];
    const [x, y, w, h] = nodeRectangle(node);
    const [fill, stroke] = nodeColours(node);
    context.globalAlpha = isDim(box, node) ? 0.3 : 1;
    frame(x, y, w, h, nodes.kind[node] === INPUT ? h / 2 : 5, fill, stroke, ringOf(node, box));
    if (view.scale >= TEXT) {
      write(label(node), x + 9, y + 16, 12, colours.text);
      write(strings[nodes.caption[node]], x + 9, y + 31, 11, colours.faint);
    } else if (view.scale >= BIG_TEXT) {
      writeBig(label(node).replace(/\{.*/, ""), x, y, w, h, colours.text);
    }
    if (nodes.results[node].length) paintResult(x, y, w, h);
    context.globalAlpha = 1;
  }

  // A thick right end: a result of the whole graph.
  function paintResult(x, y, w, h) {
    context.fillStyle = colours.text;
    context.fillRect(x + w - 3, y + 3, 4, h - 6);
  }

  // What is under the pointer -------------------------------------------------------------------

  function thingAt(clientX, clientY) {
    const bounds = canvas.getBoundingClientRect();
    const x = (clientX - bounds.left - view.x) / view.scale;
    const y = (clientY - bounds.top - view.y) / view.scale;
    const isIn = ([l, t, w, h]) => x >= l && x <= l + w && y >= t && y <= t + h;
    let ground = null;
    for (let box = 0; box < nBoxes; box++) {
      if (!isIn([left[box], top[box], width[box], height[box]])) continue;
      if (!isGroup(box)) return { node: members[box][0] };
      const [tx, ty, side] = toggleSquare(box);
      if (view.scale >= TEXT && isIn([tx - 2, ty - 2, side + 4, side + 4])) return { box, toggle: true };
      if (!open[box]) return { box };
      const node = members[box].find((member) => isIn(nodeRectangle(member)));
      if (node !== undefined) return { node };
      ground = { box };
    }
    const reach = 5 / view.scale;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.lineWidth = 2 * reach;
    for (const each of [...(chosen ? chosen.lines : []), ...lines]) {
      const [x0, y0, x1, y1] = each.bounds;
      if (x < x0 - 25 - reach || x > x1 + 25 + reach || y < y0 - reach || y > y1 + reach) continue;
      const isWhole = !each.hidden || (chosen && chosen.lines.has(each));
      if (context.isPointInStroke(isWhole ? each.path : each.stubs, x, y)) return { line: each };
    }
    return ground;
  }

  // Texts -------------------------------------------------------------------------------------

  function element(tag, text, className) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  function paragraphs(thing) {
    if (thing.line) return lineTexts(thing.line).flatMap(([head, ...rest]) =>
      [element("div", head, "head"), ...rest.map((text) => element("div", text))]);
    if (thing.node === undefined) {
      return [element("div", strings[boxes.label[thing.box]], "head"),
        element("div", strings[boxes.caption[thing.box]], "faint")];
    }
    const node = thing.node;
    const lines = [element("div", op(node) || label(node), "head")];
    if (nodes.kind[node] === INPUT) lines.push(element("div", "input of the graph", "faint"));
    if (nodes.kind[node] === CONSTANT) lines.push(element("div", "constant", "faint"));
    const names = listed(nodes.names[node]);
    if (names.length && op(node)) lines.push(element("div", `name: ${names.join(", ")}`));
    for (const type of listed(nodes.types[node])) lines.push(element("div", type, "mono"));
    const constants = listed(nodes.constants[node]);
    if (constants.length) lines.push(element("div", `constants: ${constants.join(", ")}`));
    if (nodes.results[node].length) {
      lines.push(element("div", `result ${nodes.results[node].join(", ")} of the graph`));
    }
    if (nodes.kind[node] === UNFUSABLE || nodes.kind[node] === ALONE) {
      lines.push(element("div", DATA.kinds[nodes.kind[node]], "faint"));
    }
    if (nodes.file[node] >= 0) {
      lines.push(element("div", `${strings[nodes.file[node]]}:${nodes.line[node]}`, "faint"));
      lines.push(element("code", strings[nodes.code[node]], "code"));
    }
    return lines;
  }

  function reason(edge) {
    const why = edges.why[edge];
    if (why < 0) return nodes.kind[edges.source[edge]] === INPUT ? "reads an input" : "in the same kernel";
    const path = edges.path[edge];
    if (!path) return `not fused: ${strings[why]}`;
    const steps = path.map((node) => op(node) || label(node));
    // Of a long path its last step follows on those that were left out.
    if (edges.leftOut[edge]) steps.splice(-1, 0, `... (${edges.leftOut[edge]} more)`);
    return `not fused: ${strings[why]}: ${steps.join(" -> ")}`;
  }

  // For a line of one edge its ends and the reason; for one of several each reason with its number.
  function lineTexts(each) {
    const name = (box, node) =>
      isGroup(box) && !open[box]
        ? strings[boxes.label[box]].replace(/(kernel .*):.*/, "$1") : op(node) || label(node);
    const first = each.edges[0];
    const [from, to] = [name(each.from, edges.source[first]), name(each.to, edges.target[first])];
    const head = `${from} \u2192 ${to}`;
    const counts = new Map();
    for (const edge of each.edges) counts.set(reason(edge), (counts.get(reason(edge)) ?? 0) + 1);
    const texts = [...counts].map(([text, n]) => (n > 1 ? `${text} (${n} edges)` : text));
    return [[head, ...texts]];
  }

  const panel = byId("panel");
  const help = [...panel.childNodes];
  // Most entries of a list: the panel is for reading.
  const SHOWN_ENTRIES = 100;

  function describe() {
    if (!chosen) return panel.replaceChildren(...help);
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
    panel.replaceChildren(...parts);
    panel.scrollTop = 0;
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

  const nodeName = (node) =>
    [op(node) || label(node), ...listed(op(node) ? nodes.names[node] : [])].join(" \u00b7 ");
  const nodeList = (title, items) =>
    list(title, items, (node) => entry(nodeName(node), () => visit({ node })));
  function edgeList(title, items, ends) {
    return list(title, items, (edge) => {
      const item = entry(nodeName(ends[edge]), () => visit({ node: ends[edge] }));
      if (edges.why[edge] >= 0) item.append(element("div", reason(edge), "faint"));
      return item;
    });
  }

  function visit(thing) {
    choose(thing);
    centre(thing.node === undefined
      ? [left[thing.box], top[thing.box], width[thing.box], height[thing.box]] : nodeRectangle(thing.node));
  }

  // Searching ---------------------------------------------------------------------------------

  // Opening a kernel of more nodes than this for one that was found would hide where it is.
  const OPENED = 400;

  function search(text) {
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

  function step(by) {
    if (!found.length) return;
    current = (current + by + found.length) % found.length;
    byId("found").textContent = `${current + 1} of ${found.length}`;
    const node = found[current];
    const box = nodes.box[node];
    if (isGroup(box) && !open[box] && members[box].length <= OPENED) toggle(box);
    visit({ node });
  }

  // Hands -------------------------------------------------------------------------------------

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
    const changed = (thing?.line ?? null) !== (hovered?.line ?? null);
    hovered = thing;
    canvas.classList.toggle("over", Boolean(thing));
    if (changed) repaint();
    tip.hidden = !thing;
    if (!thing) return;
    tip.replaceChildren(...paragraphs(thing));
    const bounds = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - bounds.left, event.clientY - bounds.top];
    tip.style.left = `${Math.max(4, Math.min(x + 16, bounds.width - tip.offsetWidth - 8))}px`;
    const below = y + 16 + tip.offsetHeight < bounds.height;
    tip.style.top = `${below ? y + 16 : Math.max(4, y - tip.offsetHeight - 12)}px`;
  }

  const keys = {
    ArrowLeft: () => pan(80, 0),
    ArrowRight: () => pan(-80, 0),
    ArrowUp: () => pan(0, 80),
    ArrowDown: () => pan(0, -80),
    "+": () => zoom(1.25),
    "=": () => zoom(1.25),
    "-": () => zoom(0.8),
    f: fit,
    e: () => setAll(true),
    c: () => setAll(false),
    Enter: () => { if (chosen && chosen.node === undefined && chosen.box !== undefined) toggle(chosen.box); },
    "[": () => walk(readsOf, edges.source),
    "]": () => walk(readersOf, edges.target),
    Escape: () => choose(null),
  };

  function pan(dx, dy) {
    view.x += dx;
    view.y += dy;
    view.isFitted = false;
    repaint();
  }

  // From the chosen node to the first that it reads, or that reads it; at first to the first node.
  function walk(from, ends) {
    if (!nNodes) return;
    if (!chosen || chosen.node === undefined) {
      return visit({ node: chosen?.box === undefined ? 0 : members[chosen.box][0] });
    }
    if (from[chosen.node].length) visit({ node: ends[from[chosen.node][0]] });
  }

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const inField = event.target === byId("search");
    if (event.key === "/" && !inField) {
      event.preventDefault();
      return byId("search").focus();
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
    // A button of the toolbar keeps the focus after a click; Enter and the space bar are its own.
    const inTools = event.target.closest?.(".tools") && event.key !== "Enter";
    if (event.target !== canvas && event.target !== document.body && !inTools) return;
    const act = keys[event.key];
    if (act) {
      event.preventDefault();
      act();
    }
  });

  byId("search").addEventListener("input", (event) => search(event.target.value));
  byId("expand").addEventListener("click", () => setAll(true));
  byId("collapse").addEventListener("click", () => setAll(false));
  byId("fit").addEventListener("click", fit);
  byId("in").addEventListener("click", () => zoom(1.4));
  byId("out").addEventListener("click", () => zoom(1 / 1.4));
  dark.addEventListener("change", () => { readColours(); repaint(); });
  new ResizeObserver(() => (view.isFitted ? fit() : repaint())).observe(canvas);

  readColours();
  if (DATA.startsOpen) setAll(true);
  else {
    arrange();
    fit();
  }

  // Where things are on the screen, and what is shown: for tests and for the console.
  globalThis.plan = {
    nodeAt: (node) => onScreen(nodeRectangle(node)),
    boxAt: (box) => onScreen([left[box], top[box], width[box], height[box]]),
    toggleAt: (box) => onScreen([...toggleSquare(box), 12]),
    lineAt: (edge) => {
      const each = lines.find((one) => one.edges.includes(edge));
      return each && onScreen([...(each.hidden ? each.stubEnd : each.middle), 0, 0]);
    },
    places: () => ({ left: [...left], top: [...top], width: [...width], height: [...height] }),
    state: () => ({ open: [...open], node: chosen?.node, box: chosen?.box, line: chosen?.line?.edges,
      lit: [...(chosen?.lines ?? [])].flatMap((each) => each.edges),
      found, current, scale: view.scale, nLines: lines.length }),
    fit, zoom, paint,
  };

  function onScreen([x, y, w, h]) {
    const bounds = canvas.getBoundingClientRect();
    return [bounds.left + view.x + (x + w / 2) * view.scale, bounds.top + view.y + (y + h / 2) * view.scale];
  }
})();
