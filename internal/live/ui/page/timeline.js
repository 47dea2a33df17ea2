// The time line: what was delivered and dropped in the last ten minutes, what happened, and a
// slider to look at any of these moments.

import { svg, format, clock, ago } from "./format.js";
import { ask } from "./stream.js";

const height = 56;
const mostMoments = 1 << 13; // as the server keeps; a clock that jumped back makes none old

export class Timeline {
  constructor(show) {
    this.show = show; // called with a frame of the past, or undefined for the present
    this.summaries = [];
    this.past = undefined; // the number of the frame that is shown
    this.spark = document.getElementById("spark");
    this.slider = document.getElementById("slider");
    this.button = document.getElementById("live");
    this.slider.addEventListener("input", () => this.slide());
    this.button.addEventListener("click", () => (this.past === undefined ? this.go(this.latest) : this.resume()));
    new ResizeObserver(() => this.draw()).observe(this.spark.parentElement);
  }

  get latest() {
    return this.summaries.at(-1);
  }

  // begin fetches what was before this page came.
  async begin(keepFor) {
    this.keepFor = keepFor;
    try {
      const past = (await ask("history")).frames;
      const first = this.summaries.length ? this.summaries[0].seq : Infinity;
      this.summaries = past.filter((s) => s.seq < first).concat(this.summaries);
      this.draw();
    } catch { /* nothing is known yet */ }
  }

  clear() {
    this.summaries = [];
    if (this.past !== undefined) this.resume();
  }

  add(frame) {
    const s = { seq: frame.seq, at: frame.at, total: frame.total, events: frame.events };
    if (this.latest && this.latest.seq >= s.seq) this.summaries = [];
    this.summaries.push(s);
    const oldest = new Date(s.at) - this.keepFor * 1000;
    while (new Date(this.summaries[0].at) < oldest || this.summaries.length > mostMoments) this.summaries.shift();
    this.draw();
  }

  slide() {
    const s = this.summaries[Number(this.slider.value)];
    if (s === this.latest) this.resume();
    else if (s) this.go(s);
  }

  // go shows a moment of the past.
  async go(summary) {
    if (!summary) return;
    this.past = summary.seq;
    this.draw();
    try {
      const frame = await ask("frame/" + summary.seq);
      if (this.past === summary.seq) this.show(frame);
    } catch {
      if (this.past === summary.seq) this.resume(); // it is too old by now
    }
  }

  // goTo shows the moment of an event.
  goTo(when) {
    this.go(this.summaries.find((s) => new Date(s.at) >= new Date(when)));
  }

  resume() {
    this.past = undefined;
    this.draw();
    this.show(undefined);
  }

  draw() {
    const all = this.summaries;
    const at = this.past === undefined ? all.length - 1 : Math.max(0, all.findIndex((s) => s.seq === this.past));
    this.slider.max = Math.max(0, all.length - 1);
    this.slider.value = at;
    this.button.textContent = this.past === undefined ? "Pause" : "Go live";
    document.body.classList.toggle("past", this.past !== undefined);
    if (!all.length) return;
    const shown = all[at];
    const behind = (new Date(this.latest.at) - new Date(shown.at)) / 1000;
    document.getElementById("when").textContent = clock(shown.at) + (this.past === undefined ? "" : ", " + ago(behind));
    this.slider.setAttribute("aria-valuetext", `${clock(shown.at)}, ${format(shown.total.delivered_bit_s, "rate")} delivered, ${format(shown.total.drops, "count")} dropped`);
    const length = Math.max(0, Math.round((new Date(this.latest.at) - new Date(all[0].at)) / 1000));
    document.getElementById("span").textContent = (length < 60 ? "" : `${Math.floor(length / 60)}\u202fmin `) + `${length % 60}\u202fs kept`;
    this.drawSpark(all, at);
  }

  drawSpark(all, at) {
    const width = this.spark.clientWidth || 600;
    const inner = width - 16; // as wide as the slider's thumb moves
    const x = (i) => 8 + (all.length > 1 ? (i / (all.length - 1)) * inner : inner);
    const most = Math.max(1, ...all.map((s) => s.total.delivered_bit_s));
    const y = (v) => height - 8 - (v / most) * (height - 20);
    this.spark.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const line = all.map((s, i) => `${x(i).toFixed(1)} ${y(s.total.delivered_bit_s).toFixed(1)}`).join("L");
    const parts = [
      svg("path", { class: "area", d: `M${x(0)} ${height - 8}L${line}L${x(all.length - 1)} ${height - 8}Z` }),
      svg("path", { class: "delivered", d: "M" + line }),
    ];
    const drops = all.map((s, i) => (s.total.drops ? `M${x(i).toFixed(1)} ${height - 1}v-${(1 + Math.min(5, Math.log10(s.total.drops))).toFixed(1)}` : "")).join("");
    if (drops) parts.push(svg("path", { class: "drops", d: drops }));
    const signs = { fail: "M-4-4L4 4M-4 4L4-4", down: "M-4-3H4L0 4Z", up: "M-4 4H4L0-3Z", heal: "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0", mark: "M0-5V44", suspect: "M0-4V1M0 4v.5" };
    let count = 0;
    all.forEach((s, i) => {
      for (const e of s.events) {
        if (!signs[e.kind] || count++ > 200) continue;
        parts.push(svg("path", { class: "event " + e.kind, d: signs[e.kind], transform: `translate(${x(i).toFixed(1)} 8)` }));
      }
    });
    parts.push(svg("path", { class: "now", d: `M${x(at)} 2V${height - 8}` }));
    this.spark.replaceChildren(...parts);
  }
}
