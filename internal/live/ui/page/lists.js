// The lists beside the picture: connections, hosts with weft, what has happened.

import { el, figure, refresh, clock } from "./format.js";

const maxEvents = 40;

export class Lists {
  constructor(onSelect, onEvent) {
    this.onSelect = onSelect;
    this.onEvent = onEvent;
    this.events = [];
    this.conns = document.getElementById("conns");
    this.hosts = document.getElementById("hosts");
    this.happened = document.getElementById("events");
    this.drawEvents();
  }

  update(frame, chosen) {
    this.rows(this.conns, frame.conns.map((c) => `${c.from} ${c.local} ${c.remote}`), frame, () => this.connTable(frame));
    for (const row of this.conns.querySelectorAll("[data-conn]")) row.setAttribute("aria-pressed", Boolean(chosen && chosen.type === "conn" && chosen.key === row.dataset.conn));
    this.hosts.hidden = frame.hosts.length === 0;
    this.rows(this.hosts, frame.hosts.map((h) => h.name + h.verdict), frame, () => this.hostTable(frame));
  }

  // rows builds a list anew if it has other entries, and else only writes its figures.
  rows(root, keys, frame, build) {
    const key = keys.join("\n");
    if (root.dataset.keys !== key || !root.firstChild) {
      const had = root.contains(document.activeElement) ? document.activeElement.dataset.conn : undefined;
      root.replaceChildren(...build());
      root.dataset.keys = key;
      if (had) root.querySelector(`[data-conn="${CSS.escape(had)}"]`)?.focus();
    }
    refresh(root, frame);
  }

  connTable(frame) {
    const head = el("h2", {}, "Connections ", figure("total.conns", "count"));
    if (!frame.conns.length) return [head, el("p", { class: "soft" }, "None between hosts that are asked.")];
    const rows = frame.conns.map((c, i) => {
      const key = `${c.from} ${c.local} ${c.remote}`;
      const name = el("button", { type: "button", class: "row", "data-conn": key, onclick: () => this.onSelect({ type: "conn", key }) },
        el("span", { class: "ends" }, figure(`conns.${i}.from`, "text"), " → ", c.to ? figure(`conns.${i}.to`, "text") : figure(`conns.${i}.remote`, "text")),
        el("span", { class: "soft port" }, ":" + c.remote.split(":").at(-1)));
      return el("tr", {}, el("th", { scope: "row" }, name),
        el("td", {}, figure(`conns.${i}.sends_bit_s`, "rate")),
        el("td", {}, figure(`conns.${i}.resent`, "count")),
        el("td", {}, figure(`conns.${i}.out_of_order`, "count")),
        el("td", {}, figure(`conns.${i}.rtt_ms`, "ms")));
    });
    const table = el("table", {}, el("thead", {}, el("tr", {},
      ...["from, to", "sends", "resent", "out of order", "RTT"].map((t) => el("th", { scope: "col" }, t)))), el("tbody", {}, ...rows));
    const more = frame.more ? el("p", { class: "soft" }, figure("more", "count"), " more entries are left out.") : undefined;
    return [head, el("div", { class: "scroll" }, table), more].filter(Boolean);
  }

  hostTable(frame) {
    return [el("h2", {}, "Hosts with weft"), el("ul", { class: "verdicts" }, ...frame.hosts.map((h, i) => el("li", { "data-verdict": h.verdict },
      el("b", {}, figure(`hosts.${i}.name`, "text")), " ", figure(`hosts.${i}.verdict`, "text", "em"), ": ", figure(`hosts.${i}.why`, "text"))))];
  }

  // happens adds events, the newest first.
  happens(events) {
    if (!events.length) return;
    this.events = events.slice().reverse().concat(this.events).slice(0, maxEvents);
    this.drawEvents();
    document.getElementById("says").textContent = events.map((e) => e.text).join(". ");
  }

  setEvents(events) {
    this.events = events.slice(-maxEvents).reverse();
    this.drawEvents();
  }

  drawEvents() {
    const list = this.events.map((e) => el("li", { class: e.kind },
      el("button", { type: "button", class: "row", onclick: () => this.onEvent(e) }, el("time", {}, clock(e.at)), " ", el("span", {}, e.text))));
    this.happened.replaceChildren(el("h2", {}, "What happened"), list.length ? el("ol", {}, ...list) : el("p", { class: "soft" }, "Nothing so far."));
  }
}
