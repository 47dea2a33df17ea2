// What is selected: a link, a node or a connection, with its figures.

import { el, svg, figure, format, refresh } from "./format.js";
import { ask } from "./stream.js";

export class Detail {
  constructor(actions) {
    this.actions = actions; // { close, toggle(target), select(item), canBreak() }
    this.root = document.getElementById("detail");
  }

  // open shows what is selected; undefined: nothing.
  open(chosen, picture, frame) {
    this.chosen = chosen;
    this.picture = picture;
    this.built = "";
    this.root.hidden = !chosen;
    if (!chosen || !frame) return;
    this.update(frame);
  }

  update(frame) {
    if (!this.chosen) return;
    const build = { link: () => this.link(), node: () => this.node(frame), conn: () => this.conn(frame) }[this.chosen.type];
    const key = this.shape(frame);
    if (key !== this.built) {
      this.built = key;
      const focused = this.root.contains(document.activeElement) ? document.activeElement.id : "";
      this.root.replaceChildren(...build().filter(Boolean));
      if (focused) document.getElementById(focused)?.focus();
    }
    this.refreshButton(frame);
    refresh(this.root, frame);
  }

  // shape is the same as long as only figures differ.
  shape(frame) {
    const { type, id, key } = this.chosen;
    if (type === "link") return "link " + id;
    if (type === "conn") {
      const i = connAt(frame, key);
      return `conn ${key} ${i} ${this.wayKeys(frame)}`;
    }
    return `node ${id} ${this.wayKeys(frame)}`;
  }

  wayKeys(frame) {
    return frame.ways.map((w) => w.host + w.bounce + w.uplink + w.state).join();
  }

  heading(text, kind) {
    return el("div", { class: "bar" }, el("h2", {}, text, " ", el("small", {}, kind)),
      el("button", { type: "button", id: "close", "aria-label": "Close details", onclick: () => this.actions.close() }, "×"));
  }

  breakButton(target) {
    if (!this.actions.canBreak()) return undefined;
    this.target = target;
    return el("button", { type: "button", id: "toggle", class: "act", onclick: () => this.actions.toggle(target) }, "Break");
  }

  refreshButton(frame) {
    const button = document.getElementById("toggle");
    if (!button || !this.target) return;
    const failed = frame.failures.find((f) => f.target === this.target);
    const text = failed ? `Heal (${failed.mode})` : "Break";
    if (button.textContent !== text) button.textContent = text;
  }

  flowTable(i) {
    const l = this.picture.links[i];
    const [a, b] = [this.picture.nodes[l.a].name, this.picture.nodes[l.b].name];
    const row = (name, part, kind) => el("tr", {}, el("th", { scope: "row" }, name),
      el("td", {}, figure(`links.${i}.up.${part}`, kind)), el("td", {}, figure(`links.${i}.down.${part}`, kind)));
    return el("table", {}, el("thead", {}, el("tr", {}, el("td", {}), el("th", { scope: "col" }, "up ", el("small", {}, "from " + a)), el("th", { scope: "col" }, "down ", el("small", {}, "from " + b)))),
      el("tbody", {}, row("rate", "bit_s", "rate"), l.bit_s ? row("utilisation", "use", "part") : "", row("queue", "queue_bytes", "bytes"), row("dropped", "drops", "count"), row("loss", "loss", "part")));
  }

  link() {
    const i = this.chosen.id;
    const l = this.picture.links[i];
    const chart = el("div", { class: "chart" });
    const members = el("div", {});
    this.series(i, chart);
    if (this.picture.bundles) this.members(i, members);
    const short = (x, kind) => format(x, kind).replace(/\.0+(?=\D)/, "");
    const facts = [l.bit_s ? `${short(l.bit_s, "rate")} each direction` : "rate not known", l.room_bytes ? `queues of ${short(l.room_bytes, "bytes")}` : "", l.members > 1 ? `${l.members} links: rates are sums, the rest is of the worst` : ""];
    return [this.heading(l.name, "link"), el("p", {}, "State: ", figure(`links.${i}.state`, "text", "b"), " ", this.breakButton(l.name)),
      el("p", { class: "soft" }, facts.filter(Boolean).join(", ")), this.flowTable(i), chart, members];
  }

  // series draws what the link did in the time that is kept.
  async series(i, chart) {
    let s;
    try {
      s = await ask("series?link=" + i);
    } catch {
      return;
    }
    const [w, h] = [320, 76];
    const most = Math.max(this.picture.links[i].bit_s / (this.picture.links[i].members || 1) || 0, ...s.up.map((f) => f.bit_s), ...s.down.map((f) => f.bit_s), 1);
    const path = (flows) => "M" + flows.map((f, n) => `${((n / Math.max(1, flows.length - 1)) * w).toFixed(1)} ${(h - 2 - (f.bit_s / most) * (h - 6)).toFixed(1)}`).join("L");
    const g = svg("svg", { viewBox: `0 0 ${w} ${h}`, preserveAspectRatio: "none", role: "img", "aria-label": "Rates over the time that is kept" });
    g.append(svg("path", { class: "base", d: `M0 ${h - 2}H${w}M0 4H${w}` }), svg("path", { class: "upline", d: path(s.up) }), svg("path", { class: "downline", d: path(s.down) }));
    chart.replaceChildren(g, el("p", { class: "soft" }, el("i", { class: "key upline" }), "up ", el("i", { class: "key downline" }), `down, ${s.seq.length} moments`));
  }

  async members(i, root) {
    const list = await ask("members?link=" + i).catch(() => []);
    root.replaceChildren(el("h3", {}, "The links with most to tell, when this was opened"), el("ul", {}, ...list.map((m) => el("li", {},
      `${m.name}: ${m.state}, ${Math.round(Math.max(m.up.use, m.down.use) * 100)} %`))));
  }

  node(frame) {
    const i = this.chosen.id;
    const n = this.picture.nodes[i];
    const links = this.picture.links.map((l, at) => [l, at]).filter(([l]) => l.a === i || l.b === i).slice(0, 64);
    const rows = links.map(([l, at]) => {
      const [out, into, peer] = l.a === i ? ["up", "down", l.b] : ["down", "up", l.a];
      return el("tr", {}, el("th", { scope: "row" }, el("button", { type: "button", class: "row", onclick: () => this.actions.select({ type: "link", id: at }) }, this.picture.nodes[peer].name)),
        el("td", {}, figure(`links.${at}.state`, "text")), el("td", {}, figure(`links.${at}.${out}.bit_s`, "rate")), el("td", {}, figure(`links.${at}.${into}.bit_s`, "rate")), el("td", {}, figure(`links.${at}.${out}.queue_bytes`, "bytes")));
    });
    const table = el("table", {}, el("thead", {}, el("tr", {}, ...["link to", "state", "sends", "gets", "queue"].map((t) => el("th", { scope: "col" }, t)))), el("tbody", {}, ...rows));
    const facts = [n.address, n.members > 1 ? `${n.members} nodes` : ""].filter(Boolean).join(", ");
    return [this.heading(n.name, n.tier === 0 ? "host" : "switch"), facts ? el("p", { class: "soft" }, facts) : undefined,
      this.breakButton(n.name), el("div", { class: "scroll" }, table), this.wayTable(frame, n.name)];
  }

  // wayTable is what a host with weft sends by its ways up.
  wayTable(frame, host) {
    const ways = frame.ways.map((w, i) => [w, i]).filter(([w]) => w.host === host);
    if (!ways.length) return undefined;
    const rows = ways.map(([, i]) => el("tr", {}, el("th", { scope: "row" }, figure(`ways.${i}.bounce`, "text"), frame.ways[i].state && frame.ways[i].state !== "up" ? figure(`ways.${i}.state`, "text", "small", "doubt") : ""),
      el("td", {}, figure(`ways.${i}.share`, "part")), el("td", {}, figure(`ways.${i}.bit_s`, "rate")), el("td", {}, figure(`ways.${i}.rtt_p50_ms`, "ms")), el("td", {}, figure(`ways.${i}.loss`, "part"))));
    return el("div", { class: "scroll" }, el("h3", {}, `What ${host} sends, by path`), el("table", {}, el("thead", {}, el("tr", {},
      ...["by", "share", "rate", "RTT p50", "loss"].map((t) => el("th", { scope: "col" }, t)))), el("tbody", {}, ...rows)));
  }

  conn(frame) {
    const i = connAt(frame, this.chosen.key);
    if (i < 0) return [this.heading(this.chosen.key, "connection"), el("p", {}, "It is closed.")];
    const c = frame.conns[i];
    const row = (name, part, kind) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, figure(`conns.${i}.${part}`, kind)));
    return [this.heading(`${c.from} → ${c.to || c.remote}`, "connection"), el("p", { class: "soft" }, `${c.local} → ${c.remote}`),
      el("table", {}, el("tbody", {}, row("state", "state", "text"), row("sends", "sends_bit_s", "rate"), row("gets", "gets_bit_s", "rate"), row("sent", "sent_bytes", "bytes"), row("received", "received_bytes", "bytes"),
        row("waiting to be sent", "waiting_bytes", "bytes"), row("resent just now", "resent", "count"), row("resent in all", "all_resent", "count"), row("out of order just now", "out_of_order", "count"), row("RTT", "rtt_ms", "ms"))),
      this.wayTable(frame, c.from)];
  }
}

// connAt is the place of a connection in a frame; -1: it is closed.
export function connAt(frame, key) {
  return frame.conns.findIndex((c) => `${c.from} ${c.local} ${c.remote}` === key);
}
