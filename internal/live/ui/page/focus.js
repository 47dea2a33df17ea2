// The keyboard in the picture. It is one stop of the Tab key; arrows move from there: left and
// right in a row, up and down to the next row. Rows are the nodes of a tier, and the links
// between two tiers.

export class Focus {
  constructor(root, onEnter, describe) {
    this.describe = describe;
    this.rows = [];
    this.row = 0;
    this.place = 0;
    root.addEventListener("keydown", (e) => this.key(e, onEnter));
    root.addEventListener("focusin", (e) => this.entered(e.target.closest("[data-link],[data-node]")));
  }

  set(picture, m, nodes, links) {
    const had = this.current;
    const rows = new Map(); // by height: tier 2 is 2, what leads up from it 2.5
    const add = (height, x, item, g) => {
      if (!rows.has(height)) rows.set(height, []);
      rows.get(height).push({ x, item, g });
    };
    picture.nodes.forEach((n, i) => add(n.tier, m.x[i], { type: "node", id: i }, nodes[i].g));
    picture.links.forEach((l, i) => add(picture.nodes[l.a].tier + 0.5, (m.x[l.a] + m.x[l.b]) / 2 + m.x[l.a] / 1e4, { type: "link", id: i }, links[i].g));
    this.rows = [...rows.keys()].sort((a, b) => b - a).map((h) => rows.get(h).sort((a, b) => a.x - b.x));
    this.row = this.place = 0;
    if (had) this.find(had.item);
    this.offer();
  }

  get current() {
    return this.rows[this.row] && this.rows[this.row][this.place];
  }

  // item is what has the focus in the picture, if anything has.
  get item() {
    const c = this.current;
    return c && c.g === document.activeElement ? c.item : undefined;
  }

  find(item) {
    this.rows.forEach((row, r) => row.forEach((c, p) => {
      if (c.item.type === item.type && c.item.id === item.id) [this.row, this.place] = [r, p];
    }));
  }

  // offer makes the current one the stop of the Tab key.
  offer() {
    for (const row of this.rows) for (const c of row) c.g.setAttribute("tabindex", -1);
    if (this.current) this.current.g.setAttribute("tabindex", 0);
    this.refresh();
  }

  entered(g) {
    if (!g) return;
    if (g.dataset.link !== undefined) this.find({ type: "link", id: Number(g.dataset.link) });
    else this.find({ type: "node", id: Number(g.dataset.node) });
    this.offer();
  }

  refresh() {
    const c = this.current;
    if (c) c.g.setAttribute("aria-label", this.describe(c.item));
  }

  key(e, onEnter) {
    const c = this.current;
    if (!c || e.altKey || e.ctrlKey || e.metaKey) return;
    const last = this.rows[this.row].length - 1;
    switch (e.key) {
      case "ArrowLeft": this.place = Math.max(0, this.place - 1); break;
      case "ArrowRight": this.place = Math.min(last, this.place + 1); break;
      case "Home": this.place = 0; break;
      case "End": this.place = last; break;
      case "ArrowUp": this.move(-1); break;
      case "ArrowDown": this.move(1); break;
      case "Enter": case " ": onEnter(c.item); break;
      default: return;
    }
    e.preventDefault();
    this.offer();
    this.current.g.focus();
  }

  // move goes to the nearest one of another row.
  move(by) {
    const x = this.current.x;
    const row = this.rows[this.row + by];
    if (!row) return;
    this.row += by;
    this.place = row.reduce((best, c, i) => (Math.abs(c.x - x) < Math.abs(row[best].x - x) ? i : best), 0);
  }
}
