// What the server tells: a fabric, a whole frame, and then what changes.

const states = ["unknown", "up", "suspected", "silent", "down"];

function flow(list, i) {
  return { bit_s: list[i], queue_bytes: list[i + 1], drops: list[i + 2], use: list[i + 3], loss: list[i + 4] };
}

// link reads one of a delta's links: see live.LinkChange.
function link(list) {
  return { state: states[list[1]] || "unknown", bad: list[2], up: flow(list, 3), down: flow(list, 8) };
}

// apply returns the frame of a delta, and which links differ; undefined: it is to another frame.
export function apply(before, delta) {
  if (delta.base && (!before || before.seq !== delta.base)) return undefined;
  const frame = delta.base ? { ...before, links: before.links.slice() } : { links: [] };
  for (const name of ["seq", "at", "seconds", "fabric", "events", "total"]) frame[name] = delta[name];
  frame.trouble = delta.trouble || "";
  frame.more = delta.more || 0;
  for (const name of ["conns", "ways", "hosts", "suspects", "failures"]) if (delta[name]) frame[name] = delta[name];
  for (const l of delta.links) frame.links[l[0]] = link(l);
  return { frame, changed: delta.base ? delta.links.map((l) => l[0]) : undefined };
}

// listen calls on.fabric, on.frame, on.trouble and on.lost.
export function listen(on) {
  let frame;
  const source = new EventSource("api/stream");
  source.addEventListener("fabric", (e) => {
    frame = undefined;
    on.fabric(JSON.parse(e.data));
  });
  source.addEventListener("frame", (e) => {
    const next = apply(frame, JSON.parse(e.data));
    if (!next) { // something was lost
      source.close();
      listen(on);
      return;
    }
    frame = next.frame;
    on.frame(frame, next.changed);
  });
  source.addEventListener("trouble", (e) => on.trouble(JSON.parse(e.data)));
  source.onerror = () => {
    on.lost();
    if (source.readyState === EventSource.CLOSED) setTimeout(() => listen(on), 2000); // as when there are too many
  };
}

export async function ask(path) {
  const answer = await fetch("api/" + path);
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer.json();
}

// The key is behind the # of the address that weft prints. It stays in this tab.
function takeKey() {
  const given = new URLSearchParams(location.hash.slice(1)).get("key");
  if (given) {
    sessionStorage.setItem("weft-key", given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem("weft-key") || "";
}

const key = takeKey();

export function hasKey() {
  return key !== "";
}

// change makes something fail or heals it.
export async function change(what, target, mode) {
  const answer = await fetch("api/" + what, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Weft-Key": key },
    body: JSON.stringify({ target, mode }),
  });
  if (!answer.ok) throw new Error((await answer.text()).trim());
}
