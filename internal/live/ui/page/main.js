// The page: what the server tells goes to the picture, the time line and the lists. What is
// shown is the present, or a moment of the past that the slider chose.

import { el, figure, refresh } from "./format.js";
import { listen, change, hasKey, ask } from "./stream.js";
import { Fabric } from "./fabric.js";
import { Timeline } from "./timeline.js";
import { Lists } from "./lists.js";
import { Detail, connAt } from "./detail.js";
import { drawLegend } from "./legend.js";
import { startTheme } from "./theme.js";

const byId = (id) => document.getElementById(id);
let picture, present, shown, chosen;

const fabric = new Fabric(byId("fabric"), pick);
const line = new Timeline((frame) => show(frame || present));
const lists = new Lists(select, (e) => line.goTo(e.at));
const detail = new Detail({ close: () => select(undefined), toggle, select, canBreak });

function canBreak() {
  return Boolean(picture && picture.can_fail && hasKey());
}

// show shows a frame; changed are the links that differ from the one shown before.
function show(frame, changed) {
  if (!frame || !picture || frame.links.length !== picture.links.length) return;
  shown = frame;
  document.body.dataset.seq = frame.seq;
  fabric.update(frame, changed);
  lists.update(frame, chosen);
  detail.update(frame);
  if (chosen && chosen.type === "conn") showPaths();
  refresh(byId("totals"), frame);
  byId("totals").classList.toggle("drops", frame.total.drops > 0);
  byId("totals").classList.toggle("downs", frame.total.down > 0);
  trouble(frame.trouble);
}

function trouble(text) {
  byId("trouble").hidden = !text;
  if (byId("trouble").textContent !== text) byId("trouble").textContent = text || "";
}

function status(state, text) {
  byId("status").dataset.state = state;
  byId("status").textContent = text;
}

// pick is a click in the picture: it selects, or breaks.
function pick(item) {
  if (byId("breaking").checked && canBreak() && item.type !== "conn") {
    toggle(item.type === "link" ? picture.links[item.id].name : picture.nodes[item.id].name);
    return;
  }
  select(item);
}

function select(item) {
  const same = item && chosen && JSON.stringify(item) === JSON.stringify(chosen);
  chosen = same ? undefined : item;
  detail.open(chosen, picture, shown);
  if (shown) lists.update(shown, chosen);
  ways = undefined;
  fabric.choose(chosen, undefined);
  if (chosen && chosen.type === "conn") showPaths();
  if (chosen && matchMedia("(max-width: 900px)").matches) byId("detail").scrollIntoView({ block: "nearest" });
}

// The paths of the connection that is selected.
let ways;

async function showPaths() {
  const i = connAt(shown, chosen.key);
  if (i < 0) return;
  const from = picture.nodes.findIndex((n) => n.name === shown.conns[i].from);
  const to = picture.nodes.findIndex((n) => n.name === shown.conns[i].to);
  if (from < 0 || to < 0) return;
  const key = `${from} ${to} ${picture.version}`;
  if (!ways || ways.key !== key) {
    const mine = (ways = { key });
    const paths = await ask(`paths?from=${from}&to=${to}`).catch(() => []);
    if (ways !== mine) return;
    const way = { up: new Set(), down: new Set(), nodes: new Set(), bounces: new Set(), host: picture.nodes[from].name };
    for (const p of paths) {
      way.bounces.add(picture.nodes[p.bounce].name);
      p.nodes.forEach((n) => way.nodes.add(n));
      p.links.forEach((l, n) => way[picture.links[l].a === p.nodes[n] ? "up" : "down"].add(l));
    }
    fabric.choose(chosen, way);
  }
}

// toggle breaks a link or a node, or heals it if it was broken.
async function toggle(target) {
  const failed = present && present.failures.some((f) => f.target === target);
  hint(failed ? `${target} is being healed` : `${target} is being broken`);
  try {
    await change(failed ? "heal" : "fail", target, byId("mode").value);
    hint("");
  } catch (err) {
    hint(err.message);
  }
}

function hint(text) {
  byId("hint").hidden = !text;
  byId("hint").textContent = text;
}

function totals() {
  const one = (name, place, kind) => el("div", { class: place.split(".").at(-1) }, el("dt", {}, name), el("dd", {}, figure(place, kind)));
  const rates = !picture || picture.links.some((l) => l.bit_s);
  const queues = !picture || picture.links.some((l) => l.room_bytes);
  byId("totals").replaceChildren(...[one("delivered", "total.delivered_bit_s", "rate"), rates && one("busiest direction", "total.use", "part"), queues && one("longest queue", "total.queue_bytes", "bytes"),
    one("dropped", "total.drops", "count"), one("links down", "total.down", "count"), one("connections", "total.conns", "count")].filter(Boolean));
}

function setPicture(p) {
  if (JSON.stringify(p) === JSON.stringify(picture)) { // the stream has begun anew: what is selected stays
    line.begin(p.keep_s).then(() => lists.setEvents(line.summaries.flatMap((s) => s.events)));
    return;
  }
  picture = p;
  shown = undefined;
  totals();
  const kinds = { lab: "lab ", host: "host ", demo: "demo in lab " };
  byId("name").textContent = kinds[p.kind] + p.name;
  byId("about").textContent = p.about + (p.bundles ? "; drawn in bundles by pod and tier" : "");
  document.title = `weft: ${kinds[p.kind]}${p.name}`;
  byId("break").hidden = !canBreak();
  if (p.can_fail && !hasKey()) hint("To break links, open the page by the address that weft ui printed: it has the key.");
  byId("mode").replaceChildren(...p.modes.map((m) => el("option", { value: m }, m)));
  drawLegend(byId("legend"), p);
  line.clear();
  select(undefined);
  fabric.setPicture(p);
  line.begin(p.keep_s).then(() => lists.setEvents(line.summaries.flatMap((s) => s.events)));
}

listen({
  fabric: setPicture,
  frame(frame, changed) {
    present = frame;
    status("live", "live");
    line.add(frame);
    lists.happens(frame.events);
    if (line.past === undefined) show(frame, shown && changed);
    else if (!shown) show(frame);
  },
  trouble(text) {
    status("trouble", "no data");
    trouble(text);
  },
  lost: () => status("lost", "no contact"),
});

totals();
startTheme(byId("theme"));
byId("healall").addEventListener("click", () => change("heal", "").then(() => hint(""), (err) => hint(err.message)));
document.addEventListener("keydown", (e) => {
  if (e.target.matches("input, select, textarea") && e.key !== "Escape") return;
  const item = fabric.focus.item;
  if (e.key === "Escape") select(undefined);
  if (e.key.toLowerCase() === "f" && item && canBreak() && !e.ctrlKey && !e.metaKey) {
    toggle(item.type === "link" ? picture.links[item.id].name : picture.nodes[item.id].name);
  }
});
