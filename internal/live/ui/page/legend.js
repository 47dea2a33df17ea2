// What colours, widths and signs mean.

import { el, svg } from "./format.js";

function sample(...parts) {
  const s = svg("svg", { viewBox: "0 0 26 14", width: 26, height: 14, "aria-hidden": "true" });
  s.append(...parts);
  return s;
}

export function drawLegend(root, picture) {
  const relative = picture.links.every((l) => !l.bit_s);
  const of = relative ? " of the busiest" : " used";
  const items = [];
  const ramp = sample();
  ramp.setAttribute("viewBox", "0 0 86 14");
  ramp.setAttribute("width", 86);
  for (let i = 0; i < 6; i++) ramp.append(svg("line", { class: "lane u" + i, x1: 2 + i * 14, x2: 14 + i * 14, y1: 7, y2: 7, "stroke-width": 1.2 + i }));
  items.push([ramp, "0 to 100\u202f%" + of]);
  items.push([sample(svg("line", { class: "lane u1", x1: 1, x2: 25, y1: 7, y2: 7, "stroke-width": 2 }), svg("line", { class: "queue", x1: 1, x2: 12, y1: 7, y2: 7, "stroke-width": 6 })), "queue at a port"]);
  items.push([sample(svg("path", { class: "drop", d: "M-5-4H5L0 5Z", transform: "translate(13 7)" })), "drops"]);
  for (const [kind, d, text] of [["cross", "M-3-3L3 3M-3 3L3-3", "down"], ["mute", "M-3.5 0H3.5", "silent"], ["doubt", "M-1.8-1.8a2 1.8 0 1 1 2.6 1.7q-.8.4-.8 1.2M0 3.4v.3", "suspected"]]) {
    const g = svg("g", { class: kind, transform: "translate(13 7)" });
    g.append(svg("circle", { r: 6.3 }), svg("path", { d }));
    items.push([sample(g), text]);
  }
  root.replaceChildren(...items.map(([s, text]) => el("li", {}, s, text)));
}
