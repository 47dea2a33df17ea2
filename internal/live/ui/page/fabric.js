// The picture: nodes, and links with two lanes each. Colour and width of a lane are its
// utilisation, what runs along it is its speed, the bar at its beginning its queue.

import { svg, format, refresh } from "./format.js";
import { measure, box, lanes, along } from "./geometry.js";
import { Focus } from "./focus.js";

const steps = 5;
const stillAbove = 420; // links: above it nothing runs, which would cost too much

// useClass is a lane's colour: idle below 1 %, then one for each fifth.
export function useClass(use) {
  return use < 0.01 ? "u0" : "u" + (1 + Math.min(steps - 1, Math.floor(use * steps)));
}

export class Fabric {
  constructor(root, onSelect) {
    this.root = root;
    this.onSelect = onSelect;
    this.chosen = undefined; // { type, id }
    this.way = undefined; // what a connection's paths are: { up: Set, down: Set, shares: Map }
    this.focus = new Focus(root, (item) => onSelect(item), (item) => this.describe(item));
    new ResizeObserver(() => this.draw()).observe(root);
  }

  setPicture(picture) {
    this.picture = picture;
    this.frame = undefined;
    this.width = 0;
    this.draw();
  }

  // draw draws all anew, if there is another picture or width.
  draw() {
    const width = Math.max(300, Math.floor(this.root.clientWidth));
    if (!this.picture || width === this.width) return;
    this.width = width;
    const m = measure(this.picture, width);
    this.measures = m;
    const all = svg("svg", { viewBox: `0 0 ${m.width} ${m.height}`, width: m.width, height: m.height, role: "group", "aria-label": "Fabric: links and nodes" });
    this.svg = all;
    for (const p of this.picture.layout.pods) this.drawPod(all, m, p);
    const boxes = this.picture.nodes.map((_, i) => box(this.picture, m, i));
    this.links = this.picture.links.map((l, i) => this.drawLink(all, m, l, i, boxes));
    this.nodes = this.picture.nodes.map((n, i) => this.drawNode(all, m, n, i, boxes[i]));
    this.over = svg("g", { class: "over" });
    this.shares = svg("g", { class: "over" });
    this.shareKey = undefined;
    all.append(this.over, this.shares);
    this.marks = this.links.map(() => undefined);
    all.classList.toggle("still", this.picture.links.length > stillAbove);
    this.root.replaceChildren(all);
    this.focus.set(this.picture, m, this.nodes, this.links);
    if (this.frame) this.update(this.frame);
    this.showChoice();
  }

  drawPod(all, m, p) {
    if (m.tiers < 3 || this.picture.layout.pods.length < 2) return;
    const pad = Math.min(9, m.slot / 2.2);
    const x = (v) => 22 + v * (m.width - 44);
    const top = 26 + (m.tiers - 1 - p.top) * m.gap - 24;
    all.append(svg("rect", { class: "pod", x: x(p.left) - pad, y: top, width: x(p.right) - x(p.left) + 2 * pad, height: m.height - top - 2, rx: 10 }));
  }

  drawLink(all, m, l, i, boxes) {
    const g = svg("g", { class: "link", "data-link": i, role: "button", tabindex: -1 });
    const at = lanes(m, l, boxes);
    const parts = { g, at };
    for (const way of ["up", "down"]) {
      parts[way] = svg("line", { class: `lane ${way} u0`, ...at[way] });
      parts[way + "Run"] = svg("line", { class: "run", ...at[way] });
      parts[way + "Queue"] = svg("line", { class: "queue", x1: at[way].x1, y1: at[way].y1, x2: at[way].x1, y2: at[way].y1, "stroke-width": Math.max(3, at.off * 2.1) });
      g.append(parts[way], parts[way + "Run"], parts[way + "Queue"]);
    }
    const hit = svg("line", { class: "hit", x1: m.x[l.a], y1: m.y[l.a], x2: m.x[l.b], y2: m.y[l.b], "stroke-width": Math.max(4, Math.min(16, m.rooms[0] * 0.7)) });
    parts.title = svg("title");
    g.append(hit, parts.title);
    g.addEventListener("click", () => this.onSelect({ type: "link", id: i }));
    all.append(g);
    return parts;
  }

  drawNode(all, m, n, i, b) {
    const g = svg("g", { class: "node tier" + Math.min(3, n.tier) + (n.self ? " self" : ""), "data-node": i, role: "button", tabindex: -1, "aria-label": n.name });
    g.append(svg("rect", { x: m.x[i] - b.w / 2, y: m.y[i] - b.h / 2, width: b.w, height: b.h, rx: Math.min(6, b.w / 3) }));
    if (b.label) {
      const text = svg("text", { "font-size": b.size });
      if (b.turned) {
        text.setAttribute("transform", `translate(${m.x[i] + b.size * 0.35} ${m.y[i] + 10}) rotate(-90)`);
        text.setAttribute("text-anchor", "end");
      } else {
        text.setAttribute("x", m.x[i]);
        text.setAttribute("y", m.y[i] + b.size * 0.36);
        text.setAttribute("text-anchor", "middle");
      }
      text.textContent = b.label;
      g.append(text);
    }
    const title = svg("title");
    title.textContent = [n.name, n.address, n.members > 1 ? `${n.members} nodes` : ""].filter(Boolean).join(", ");
    g.append(title);
    g.addEventListener("click", () => this.onSelect({ type: "node", id: i }));
    all.append(g);
    return { g, box: b };
  }

  // update shows a frame; changed are the links that differ, undefined: all.
  update(frame, changed) {
    this.frame = frame;
    if (!this.svg || frame.links.length !== this.links.length) return;
    this.scale = 0; // where no link's rate is known, the busiest is the measure
    for (const l of frame.links) this.scale = Math.max(this.scale, l.up.bit_s, l.down.bit_s);
    const relative = this.picture.links.some((l) => !l.bit_s);
    for (const i of changed && !relative ? changed : frame.links.keys()) this.updateLink(i, frame.links[i]);
    const blamed = new Set(frame.suspects.flatMap((s) => s.places));
    const failed = new Set(frame.failures.map((f) => f.target));
    const verdicts = new Map(frame.hosts.map((h) => [h.name, h.verdict]));
    this.picture.nodes.forEach((n, i) => {
      const c = this.nodes[i].g.classList;
      c.toggle("suspected", blamed.has(n.name));
      c.toggle("failed", failed.has(n.name));
      c.toggle("weft", verdicts.has(n.name));
      c.toggle("hurt", verdicts.has(n.name) && verdicts.get(n.name) !== "sprayed");
    });
    this.showShares();
    this.focus.refresh();
  }

  // showShares writes above the bouncing switches of a connection what its host sends by each.
  showShares() {
    if (!this.shares) return;
    const key = this.way ? this.frame.ways.map((w, i) => (w.host === this.way.host && this.way.bounces.has(w.bounce) ? i : "")).join() : "";
    if (key !== this.shareKey) {
      this.shareKey = key;
      const texts = key.split(",").filter(Boolean).map((i) => {
        const at = this.picture.nodes.findIndex((n) => n.name === this.frame.ways[i].bounce);
        const text = svg("text", { class: "share", x: this.measures.x[at], y: this.measures.y[at] - 14, "data-figure": `ways.${i}.share`, "data-kind": "part" });
        return text;
      });
      this.shares.replaceChildren(...texts);
    }
    refresh(this.shares, this.frame);
  }

  useOf(i, flow) {
    if (this.picture.links[i].bit_s) return flow.use;
    return this.scale ? flow.bit_s / this.scale : 0;
  }

  updateLink(i, now) {
    const p = this.links[i];
    const room = this.picture.links[i].room_bytes;
    p.g.classList.toggle("broken", now.state === "down");
    p.g.classList.toggle("quiet", now.state === "silent");
    for (const way of ["up", "down"]) {
      const use = this.useOf(i, now[way]);
      p[way].setAttribute("class", `lane ${way} ${useClass(use)}`);
      p[way].setAttribute("stroke-width", (Math.min(1, p.at.off / 1.1) + Math.min(1, use) * (p.at.off * 1.5)).toFixed(1));
      p[way + "Run"].setAttribute("class", `run ${way} v` + (use < 0.01 || now.state === "down" ? 0 : 1 + Math.min(steps - 1, Math.floor(use * steps))));
      const full = room ? Math.min(1, now[way].queue_bytes / room) : 0;
      const end = along(p.at[way], full * Math.min(44, p.at.length * 0.34));
      p[way + "Queue"].setAttribute("x2", end.x);
      p[way + "Queue"].setAttribute("y2", end.y);
      p[way + "Queue"].setAttribute("class", full > 0.02 ? "queue" : "queue none");
    }
    this.mark(i, now);
    p.title.textContent = this.describe({ type: "link", id: i });
  }

  // mark draws signs over a link: a cross, a bar, a question mark; a triangle where it drops.
  mark(i, now) {
    const want = [now.state, now.up.drops > 0, now.down.drops > 0].join();
    if (this.marks[i] && this.marks[i].want === want) return;
    if (this.marks[i]) this.marks[i].g.remove();
    this.marks[i] = undefined;
    const signs = { down: ["cross", "M-4-4L4 4M-4 4L4-4"], silent: ["mute", "M-4.5 0H4.5"], suspected: ["doubt", "M-2.4-2.2a2.5 2.3 0 1 1 3.4 2.1q-1 .5-1 1.5M0 4v.4"] };
    const g = svg("g", { class: "mark" });
    const at = this.links[i].at;
    if (signs[now.state]) {
      const sign = svg("g", { class: signs[now.state][0], transform: `translate(${at.mid.x} ${at.mid.y})` });
      sign.append(svg("circle", { r: 8 }), svg("path", { d: signs[now.state][1] }));
      g.append(sign);
    }
    for (const way of ["up", "down"]) {
      if (!now[way].drops) continue;
      const p = along(at[way], Math.min(30, at.length * 0.26));
      g.append(svg("path", { class: "drop", d: "M-5-4H5L0 5Z", transform: `translate(${p.x} ${p.y})` }));
    }
    if (g.childNodes.length) {
      this.over.append(g);
      this.marks[i] = { want, g };
    }
  }

  // describe is a link or node in words, with figures.
  describe(item) {
    if (item.type === "node") {
      const n = this.picture.nodes[item.id];
      const host = this.frame && this.frame.hosts.find((h) => h.name === n.name);
      return n.name + (host ? `: ${host.verdict}` : "");
    }
    const l = this.picture.links[item.id];
    const now = this.frame && this.frame.links[item.id];
    if (!now) return l.name;
    const way = (f) => [format(f.bit_s, "rate"), l.bit_s ? format(f.use, "part") : "", f.queue_bytes ? "queue " + format(f.queue_bytes, "bytes") : "", f.drops ? format(f.drops, "count") + " dropped" : ""].filter(Boolean).join(", ");
    return `${l.name} ${now.state}; up ${way(now.up)}; down ${way(now.down)}`;
  }

  // choose shows what is selected; way is what a connection's paths are.
  choose(chosen, way) {
    this.chosen = chosen;
    this.way = way;
    this.showChoice();
  }

  showChoice() {
    if (!this.svg) return;
    if (this.frame) this.showShares();
    const { chosen, way } = this;
    this.svg.classList.toggle("chosen", Boolean(way));
    this.links.forEach((p, i) => {
      p.g.classList.toggle("on", Boolean(way && (way.up.has(i) || way.down.has(i))));
      p.g.classList.toggle("pathup", Boolean(way && way.up.has(i)));
      p.g.classList.toggle("pathdown", Boolean(way && way.down.has(i)));
      p.g.classList.toggle("selected", Boolean(chosen && chosen.type === "link" && chosen.id === i));
    });
    this.nodes.forEach((n, i) => {
      n.g.classList.toggle("on", Boolean(way && way.nodes.has(i)));
      n.g.classList.toggle("selected", Boolean(chosen && chosen.type === "node" && chosen.id === i));
    });
  }
}
