// Figures as people read them. Every figure on the page is the text of an element with
// data-figure, the place of the value in a frame, and data-kind, how it is written.

// digits writes a number with three significant ones; below 0.01 it is 0.
function digits(x) {
  const places = Math.abs(x) >= 100 ? 0 : Math.abs(x) >= 10 ? 1 : 2;
  const scale = 10 ** places;
  return (Math.floor(x * scale + 0.5) / scale).toFixed(places);
}

function scaled(x, units, zero) {
  if (!x) return zero;
  let i = 0;
  while (x >= 999.5 && i < units.length - 1) {
    x /= 1000;
    i++;
  }
  return (i === 0 ? String(Math.round(x)) : digits(x)) + "\u202f" + units[i];
}

const kinds = {
  rate: (x) => scaled(x, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"], "0"),
  bytes: (x) => scaled(x, ["B", "kB", "MB", "GB", "TB"], "0"),
  part: (x) => (x ? digits(x * 100) : "0") + "\u202f%",
  count: (x) => String(x).replace(/\B(?=(\d{3})+$)/g, ","),
  ms: (x) => (x ? digits(x) + "\u202fms" : "–"),
  text: (x) => (x === undefined || x === "" ? "–" : String(x)),
};

export function format(value, kind) {
  return value === undefined || value === null ? "–" : kinds[kind](value);
}

// at returns what is at a place of a frame, such as links.3.up.bit_s.
export function at(frame, place) {
  let value = frame;
  for (const key of place.split(".")) {
    if (value === undefined || value === null) return undefined;
    value = value[key];
  }
  return value;
}

// el makes an element. Children are elements or text; nothing becomes HTML.
export function el(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "onclick") e.addEventListener("click", value);
    else if (value !== undefined && value !== false) e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...children.filter((c) => c !== undefined && c !== null));
  return e;
}

export function svg(tag, attributes) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes || {})) e.setAttribute(name, value);
  return e;
}

// figure makes an element whose text refresh keeps.
export function figure(place, kind, tag = "span", className) {
  return el(tag, { class: className, "data-figure": place, "data-kind": kind });
}

// refresh writes all figures below an element as a frame has them.
export function refresh(root, frame) {
  for (const e of root.querySelectorAll("[data-figure]")) {
    const text = format(at(frame, e.dataset.figure), e.dataset.kind);
    if (e.textContent !== text) e.textContent = text;
  }
}

export function clock(when) {
  return new Date(when).toLocaleTimeString("en-GB");
}

// ago writes a time that has passed, in seconds.
export function ago(seconds) {
  const s = Math.max(0, Math.round(seconds));
  return s < 60 ? `${s}\u202fs ago` : `${Math.floor(s / 60)}\u202fmin ${s % 60}\u202fs ago`;
}
