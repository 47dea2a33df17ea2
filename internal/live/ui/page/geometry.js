// Where things are drawn, in pixels.

const side = 22;
const above = 26;

// label is what a node's box says: of a bundle, its first one and how many more there are.
export function label(n) {
  if (!(n.members > 1)) return n.name;
  return `${n.name.split(" and ")[0]} +${n.members - 1}`;
}

// measure returns where nodes are in a picture of a width, and how large.
export function measure(picture, width) {
  const tiers = 1 + Math.max(0, ...picture.nodes.map((n) => n.tier));
  const narrow = width < 620;
  const slot = picture.layout.slot * (width - 2 * side);
  const gap = tiers > 1 ? Math.max(narrow ? 96 : 118, Math.min(168, 470 / (tiers - 1))) : 0;
  const x = picture.layout.x.map((v) => side + v * (width - 2 * side));
  const y = picture.nodes.map((n) => above + (tiers - 1 - n.tier) * gap);
  const rooms = roomByTier(picture, x, tiers, width);
  const turned = rooms[0] < 46 && rooms[0] >= 11;
  const longest = Math.max(0, ...picture.nodes.filter((n) => n.tier === 0).map((n) => label(n).length));
  const below = turned ? Math.min(140, 18 + longest * Math.min(10.5, rooms[0] * 0.8) * 0.61) : 30;
  const tier = picture.nodes.map((n) => n.tier);
  return { width, tiers, narrow, slot, gap, x, y, rooms, turned, tier, crowd: crowdOf(picture), form: formByTier(picture, rooms), height: above + gap * (tiers - 1) + below };
}

// roomByTier is the least space from one node of a tier to the next.
function roomByTier(picture, x, tiers, width) {
  const rooms = [];
  for (let t = 0; t < tiers; t++) {
    const at = picture.nodes.map((n, i) => (n.tier === t ? x[i] : NaN)).filter((v) => v === v).sort((a, b) => a - b);
    let least = width / Math.max(1, at.length);
    for (let i = 1; i < at.length; i++) least = Math.min(least, at[i] - at[i - 1]);
    rooms.push(least);
  }
  return rooms;
}

// box is a node's: width, height, its label and the size of that.
export function box(picture, m, i) {
  const n = picture.nodes[i];
  const room = m.rooms[n.tier];
  const text = label(n);
  const small = n.tier === 0 && m.turned;
  if (small) return { w: Math.min(12, room * 0.62), h: 12, label: text.length > 21 ? text.slice(0, 20) + "…" : text, size: Math.min(10.5, room * 0.8), turned: true };
  const forms = shorter(n);
  for (const t of forms.slice(Math.min(m.form[n.tier], forms.length - 1))) {
    const fit = fitting(t, room);
    if (fit) return fit;
  }
  const fits = Math.floor((room - 6) / 6.2); // of the letters of a long name
  if (fits >= 4) return { w: room - 2, h: 22, label: text.slice(0, fits - 1) + "…", size: 10 };
  return { w: Math.max(3, Math.min(16, room * 0.6)), h: Math.max(6, Math.min(16, room * 0.6)), label: "", size: 0 };
}

const sizes = [12, 11, 10, 9, 8.5]; // of letters

// fitting is the box of a label in the largest letters for which there is room; undefined: there is none.
function fitting(text, room) {
  for (const size of sizes) {
    const wide = text.length * size * 0.61 + (size > 10 ? 8 : 3);
    if (wide <= room - (size > 9 ? 4 : 1)) return { w: wide, h: 22, label: text, size };
  }
  return undefined;
}

// formByTier is the first of the labels of shorter for which all nodes of a tier have room, so that
// they are labelled alike.
function formByTier(picture, rooms) {
  return rooms.map((room, tier) => {
    const all = picture.nodes.filter((n) => n.tier === tier).map(shorter);
    const forms = Math.max(1, ...all.map((list) => list.length));
    for (let i = 0; i < forms; i++) if (all.every((list) => fitting(list[Math.min(i, list.length - 1)], room))) return i;
    return 0;
  });
}

// shorter are the labels of a node, the shortest last: of a bundle also what its members' names
// have in common up to the last dot, which is the pod.
function shorter(n) {
  const text = label(n);
  if (!(n.members > 1)) return [text];
  const first = n.name.split(" and ")[0];
  const pod = first.slice(0, Math.max(0, first.lastIndexOf(".")));
  return [text, first + "+", pod && pod + "+"].filter(Boolean);
}

// crowdOf counts the links that begin at each tier.
function crowdOf(picture) {
  const crowd = [];
  for (const l of picture.links) {
    const tier = picture.nodes[l.a].tier;
    crowd[tier] = (crowd[tier] || 0) + 1;
  }
  return crowd;
}

// lanes are the two directions of a link, side by side: where each begins and ends.
export function lanes(m, l, boxes) {
  const [xa, ya, xb, yb] = [m.x[l.a], m.y[l.a] - boxes[l.a].h / 2, m.x[l.b], m.y[l.b] + boxes[l.b].h / 2];
  const length = Math.hypot(xb - xa, yb - ya) || 1;
  const off = Math.max(l.members > 1 ? 0.8 : 1.1, Math.min(3.4, m.rooms[0] * 0.11, (0.4 * m.width) / m.crowd[m.tier[l.a]]));
  const [nx, ny] = [(-(yb - ya) / length) * off, ((xb - xa) / length) * off];
  return {
    off, length,
    up: { x1: xa - nx, y1: ya - ny, x2: xb - nx, y2: yb - ny },
    down: { x1: xb + nx, y1: yb + ny, x2: xa + nx, y2: ya + ny },
    mid: { x: (xa + xb) / 2, y: (ya + yb) / 2 },
  };
}

// along is the point of a lane at a distance from its beginning.
export function along(lane, distance) {
  const length = Math.hypot(lane.x2 - lane.x1, lane.y2 - lane.y1) || 1;
  const part = Math.min(1, distance / length);
  return { x: lane.x1 + (lane.x2 - lane.x1) * part, y: lane.y1 + (lane.y2 - lane.y1) * part };
}
