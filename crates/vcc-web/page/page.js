"use strict";
/* Names of devices, tenants, rules and pools are not trusted: all text goes into the page as text,
 * never as markup. */

const POLL_MS = 2000;
const KEPT_MS = 10 * 60 * 1000;
/** The daemon keeps no history of a flow: a chart has what this page has seen. */
const FLOW_MS = 2 * 60 * 1000;
/** A longer gap between two points is not drawn over. */
const GAP_MS = 30 * 1000;
/** Rates are means over this time: marks come in bursts. */
const RATE_MS = 10 * 1000;
/** The values of each port and rule at each point. */
const SUMS = ["flows", "window_bytes", "acked_bytes", "marks", "reductions", "retransmissions", "drops"];
const LINES = 6;
const ROWS = 100;

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

/* ---- elements ---- */

function put(element, children) {
  element.replaceChildren(...children);
  return element;
}

function el(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "class") element.className = value;
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Changes the page only where the text differs: nothing flickers or loses its selection. */
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function tell(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** One child per item, by its key: kept, moved, made or removed. Equal keys are told apart by order. */
function keyed(parent, items, keyOf, make, update) {
  const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  const times = new Map();
  const focused = document.activeElement;
  let at = parent.firstElementChild;
  for (const item of items) {
    const own = String(keyOf(item));
    const before = times.get(own) ?? 0;
    times.set(own, before + 1);
    const key = before ? `${own} again ${before}` : own;
    let child = old.get(key);
    old.delete(key);
    if (!child) {
      child = make(item);
      child.dataset.key = key;
    }
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
    update(child, item);
  }
  for (const child of old.values()) child.remove();
  if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
}

/* ---- units: the same as in crates/vcc-view/src/units.rs ---- */

const none = (value) => value === null || value === undefined;

function digits(value) {
  if (value === 0) return "0";
  return value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

function scaled(value, step, units) {
  let at = 0;
  // A value that would be rounded up to a whole step has the next unit.
  while (value >= step - 0.5 && at < units.length - 1) {
    value /= step;
    at += 1;
  }
  return [at === 0 && Number.isInteger(value) ? String(value) : digits(value), units[at]];
}

const withUnit = (step, units) => (value) => (none(value) ? "–" : scaled(value, step, units).join("\u00a0"));
const bytes = withUnit(1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
const bits = withUnit(1000, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]);
const micros = withUnit(1000, ["us", "ms", "s"]);
const perS = (value) => (none(value) ? "–" : `${digits(value)}/s`);
/** Formats a count: exact below a thousand. */
const count = (value) => (none(value) ? "–" : scaled(value, 1000, ["", "k", "M", "G", "T"]).join(""));
/** Formats a rate for an axis whose title has the unit. */
const rate = (value) => (none(value) ? "–" : value === 0 ? "0" : value < 10 ? String(+value.toFixed(value < 1 ? 2 : 1)) : count(Math.round(value)));
const plain = (value) => (none(value) ? "–" : String(value));

/** The format of a column's value, by the unit's name in the list of columns. */
const FORMATS = {
  text: plain, number: plain, count, segs: plain, bytes, bits_per_s: bits, per_s: perS, us: micros,
  fraction: (value) => (none(value) ? "–" : value.toFixed(3)),
};
const written = (column, flow) => FORMATS[column.unit](flow[column.key]);
/** Formats a value without a heading: names the unit of segments. */
const alone = (column, flow) => {
  const value = written(column, flow);
  return column.unit === "segs" && value !== "–" ? `${value} ${value === "1" ? "segment" : "segments"}` : value;
};
const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

function lasting(seconds) {
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = Math.max(0, units.findIndex(([, size]) => seconds >= size));
  const [unit, size] = units[first === -1 ? 3 : first];
  const [next, small] = units[Math.min(first + 1, 3)];
  const rest = Math.floor((seconds % size) / small);
  return `${Math.floor(seconds / size)} ${unit}${rest && next !== unit ? ` ${rest} ${next}` : ""}`;
}

/* ---- what was seen ---- */

/** The columns of a flow, from the daemon: { name, key, unit, help, sort, in_table, in_detail }. */
let columns = [];
/** Points of { at, all, ports: { name: level }, rules: { name: level } }. */
let points = [];
/** For each flow: points of { at, window, cwnd, marks }. */
const flowPoints = new Map();
let snapshot = null;
let flows = null;
const asked = { kind: "ports", sort: "rate", order: "desc", filter: "", top: "50", flow: "" };
let paused = false;

function recall() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  for (const key of Object.keys(asked)) {
    if (wanted.has(key)) asked[key] = wanted.get(key);
  }
  if (!columns.some(({ sort }) => sort && sort === asked.sort)) asked.sort = "rate";
  if (asked.order !== "asc") asked.order = "desc";
  if (asked.kind !== "rules") asked.kind = "ports";
  if (![...$("top").options].some(({ value }) => value === asked.top)) asked.top = "50";
  if (!/^[0-9a-f]{16}$/.test(asked.flow)) asked.flow = "";
}

function remember() {
  const changed = Object.entries(asked).filter(([key, value]) => value !== defaults[key]);
  history.replaceState(null, "", changed.length ? `#${new URLSearchParams(changed)}` : location.pathname);
}

/** Those of one name are summed: devices of several network namespaces may have one name. */
function byName(levels, name) {
  // Names are keys here, and one may be called __proto__.
  const found = Object.create(null);
  for (const level of levels) {
    const sum = (found[level[name]] ??= Object.fromEntries(SUMS.map((key) => [key, 0])));
    for (const key of SUMS) sum[key] += level[key];
  }
  return found;
}

function note() {
  const at = snapshot.at_unix_ms;
  if (points.length && points.at(-1).at >= at) return;
  points.push({ at, all: snapshot.all, ports: byName(snapshot.ports, "port"), rules: byName(snapshot.rules, "name") });
  points = points.filter((point) => point.at > at - KEPT_MS);
}

function noteFlows() {
  const at = flows.at_unix_ms;
  for (const flow of flows.selected ? [...flows.flows, flows.selected] : flows.flows) {
    const kept = flowPoints.get(flow.id) ?? [];
    if (kept.length && kept.at(-1).at >= at) continue;
    const cwnd = none(flow.cwnd_segs) ? null : flow.cwnd_segs * flow.mss_bytes;
    kept.push({ at, window: flow.window_shown_bytes, cwnd, marks: flow.marks });
    while (kept[0].at < at - KEPT_MS) kept.shift();
    flowPoints.set(flow.id, kept);
  }
  for (const [id, kept] of flowPoints) if (kept.at(-1).at < at - FLOW_MS) flowPoints.delete(id);
}

/** [at, value] for each point. */
const levels = (kept, value) => kept.map((point) => [point.at, value(point) ?? null]);

/** The growth per second of a sum, over the seconds before each point; null where it was reset. */
function growth(kept, value) {
  const rates = [];
  let first = 0;
  for (let at = 1; at < kept.length; at += 1) {
    while (first < at - 1 && kept[first].at < kept[at].at - RATE_MS) first += 1;
    const [before, now] = [value(kept[first]), value(kept[at])];
    const ms = kept[at].at - kept[first].at;
    const unknown = none(before) || none(now) || now < before || ms > GAP_MS;
    rates.push([kept[at].at, unknown ? null : ((now - before) * 1000) / ms]);
  }
  return rates;
}

/** The last of them. */
function lately(value) {
  const near = points.slice(-points.filter((point) => point.at >= points.at(-1).at - RATE_MS).length);
  return growth(near, value).at(-1)?.[1] ?? null;
}

/* ---- charts ---- */

function ticks(max) {
  const rough = Math.max(max, 1e-9) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough) * power;
  return Array.from({ length: Math.ceil(max / step - 1e-9) + 1 || 2 }, (_, at) => at * step);
}

/** For bytes: powers of two, whose labels are short. */
function byteTicks(max) {
  const step = 2 ** Math.ceil(Math.log2(Math.max(max, 4) / 4));
  return Array.from({ length: Math.ceil(max / step) + 1 }, (_, at) => at * step);
}

/** Splits at gaps. */
function runs(series) {
  const found = [];
  let run = [];
  let last = null;
  for (const [at, value] of series) {
    if (value === null || (last !== null && at - last > GAP_MS)) {
      if (run.length) found.push(run);
      run = [];
    }
    if (value !== null) {
      run.push([at, value]);
      last = at;
    }
  }
  if (run.length) found.push(run);
  return found;
}

class Chart {
  constructor(host, title, format, ticksOf, spanMs) {
    Object.assign(this, { host, title, format, ticksOf, spanMs, lines: [], now: 0, cross: null });
    this.root = svg("svg", { role: "img", tabindex: "0" });
    this.readout = el("div", { class: "readout", hidden: "" });
    host.append(this.root, this.readout);
    new ResizeObserver(() => this.draw()).observe(host);
    this.root.addEventListener("pointermove", (event) => this.point(this.timeAt(event.offsetX)));
    this.root.addEventListener("pointerleave", () => this.point(null));
    this.root.addEventListener("blur", () => this.point(null));
    this.root.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -5000, ArrowRight: 5000 }[event.key];
      if (!step) return;
      event.preventDefault();
      this.point((this.cross ?? this.now) + step);
    });
  }

  /** Lines of { name, index, under, points: [[at, value]] }; one under the others is broad. */
  show(lines, now) {
    Object.assign(this, { lines, now });
    this.draw();
  }

  point(at) {
    this.cross = at === null ? null : Math.min(this.now, Math.max(this.now - this.spanMs, at));
    this.draw();
  }

  timeAt(x) {
    return this.now - this.spanMs + ((x - this.left) / (this.right - this.left)) * this.spanMs;
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.host;
    if (!width || !this.now) return;
    const values = this.lines.flatMap((line) => line.points.map(([, value]) => value)).filter((value) => !none(value));
    const steps = this.ticksOf(Math.max(0, ...values));
    const top = steps.at(-1) || 1;
    const labels = steps.map((step) => this.format(step));
    this.left = 10 + 6.4 * Math.max(...labels.map((label) => label.length));
    this.right = width - 8;
    const [upper, lower] = [8, height - 20];
    const x = (at) => this.left + ((at - this.now + this.spanMs) / this.spanMs) * (this.right - this.left);
    const y = (value) => lower - (value / top) * (lower - upper);
    const parts = [];
    steps.forEach((step, at) => {
      parts.push(svg("line", { class: at ? "grid" : "axis", x1: this.left, x2: this.right, y1: y(step), y2: y(step) }));
      parts.push(svg("text", { x: this.left - 6, y: y(step) + 4, "text-anchor": "end" }, labels[at]));
    });
    const most = this.spanMs / 60_000;
    const parted = width < 420 ? 2 : most === 10 ? 5 : 4;
    for (let part = 0; part <= parted; part += 1) {
      const ago = (most * part) / parted;
      const anchor = ago === most ? "start" : ago === 0 ? "end" : "middle";
      const text = ago ? `−${ago} min` : "now";
      parts.push(svg("text", { x: x(this.now - ago * 60_000), y: height - 5, "text-anchor": anchor }, text));
    }
    for (const { index, under, points: series } of this.lines) {
      const line = svg("g", { class: `series-${index}${under ? " under" : ""}` });
      for (const run of runs(series.filter(([at]) => at >= this.now - this.spanMs))) {
        const path = run.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
        if (this.lines.length === 1) {
          const [first, last] = [x(run[0][0]), x(run.at(-1)[0])];
          line.append(svg("polygon", { points: `${first},${lower} ${path.join(" ")} ${last},${lower}` }));
        }
        if (path.length === 1) line.append(svg("circle", { cx: x(run[0][0]), cy: y(run[0][1]), r: 1.5, fill: "var(--colour)" }));
        line.append(svg("polyline", { points: path.join(" ") }));
      }
      parts.push(line);
    }
    if (!values.length) {
      const middle = { x: (this.left + this.right) / 2, y: (upper + lower) / 2, "text-anchor": "middle" };
      parts.push(svg("text", middle, "no data yet"));
    }
    this.read(parts, x, upper, lower, width);
    put(this.root, parts);
    const latest = this.lines.map(({ name, points: series }) => `${name} ${this.format(series.at(-1)?.[1] ?? null)}`);
    tell(this.root, "aria-label", `${this.title}, now: ${latest.join(", ") || "nothing"}`);
  }

  read(parts, x, upper, lower, width) {
    this.readout.hidden = this.cross === null || !this.lines.length;
    if (this.readout.hidden) return;
    const at = x(this.cross);
    parts.push(svg("line", { class: "cross", x1: at, x2: at, y1: upper, y2: lower }));
    const near = (series) => series.reduce((best, point) =>
      (Math.abs(point[0] - this.cross) < Math.abs((best?.[0] ?? Infinity) - this.cross) ? point : best), null);
    const rows = this.lines.map(({ name, index, points: series }) => {
      const point = near(series);
      const value = point && Math.abs(point[0] - this.cross) < GAP_MS ? point[1] : null;
      const label = el("span", { class: `series-${index}` }, el("i", { class: "swatch" }), name);
      return el("div", {}, label, el("b", {}, none(value) ? "–" : this.format(value)));
    });
    put(this.readout, [el("div", { class: "quiet" }, clock(this.cross)), ...rows]);
    const leftHalf = at < width / 2;
    this.readout.style.left = leftHalf ? `${at + 10}px` : "auto";
    this.readout.style.right = leftHalf ? "auto" : `${width - at + 10}px`;
  }
}

function spark(root, series, spanMs, now, width, height) {
  const shown = series.filter(([at]) => at >= now - spanMs);
  const top = Math.max(1e-9, ...shown.map(([, value]) => value ?? 0));
  const lines = runs(shown).map((run) => {
    const path = run.map(([at, value]) =>
      `${(width * (1 - (now - at) / spanMs)).toFixed(1)},${(height - 1 - (value / top) * (height - 2)).toFixed(1)}`);
    return svg("polyline", { points: path.join(" ") });
  });
  put(root, lines);
}

const sparkRoot = (width, height, name) =>
  svg("svg", { class: name, viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" });

/* ---- the parts of the page ---- */

const inBits = (bytesPerS) => (none(bytesPerS) ? null : bytesPerS * 8);

const TILES = [
  ["Flows", (now) => [count(now.flows)], (kept) => levels(kept, (point) => point.all.flows)],
  ["Acknowledged", () => bits(inBits(lately((point) => point.all.acked_bytes))).split("\u00a0"), (kept) => growth(kept, (point) => point.all.acked_bytes)],
  ["Windows shown", (now) => bytes(now.window_bytes).split("\u00a0"), (kept) => levels(kept, (point) => point.all.window_bytes)],
  ["Marks", () => [rate(lately((point) => point.all.marks)), "per second"], (kept) => growth(kept, (point) => point.all.marks)],
  ["Reductions", () => [rate(lately((point) => point.all.reductions)), "per second"], (kept) => growth(kept, (point) => point.all.reductions)],
  ["Retransmissions", () => [rate(lately((point) => point.all.retransmissions)), "per second"], (kept) => growth(kept, (point) => point.all.retransmissions)],
  ["Dropped by vcc", () => [rate(lately((point) => point.all.drops)), "per second"], (kept) => growth(kept, (point) => point.all.drops)],
];

function showTiles() {
  keyed($("tiles"), TILES, ([name]) => name,
    ([name]) => el("div", { class: "series-0" }, el("dt", {}, name), el("dd", {}, el("span"), el("span", { class: "unit" })), sparkRoot(200, 28)),
    (tile, [, value, series]) => {
      const [number, unit = ""] = value(snapshot.all);
      const [first, second] = tile.querySelectorAll("dd span");
      say(first, number);
      say(second, unit);
      spark(tile.lastElementChild, series(points), KEPT_MS, points.at(-1).at, 200, 28);
    });
}

function showCharts() {
  const now = points.at(-1).at;
  const largest = new Map();
  for (const point of points) {
    for (const [name, level] of Object.entries(point[asked.kind])) {
      largest.set(name, Math.max(largest.get(name) ?? 0, level.window_bytes, level.flows ? 1 : 0));
    }
  }
  const names = [...largest].filter(([, most]) => most > 0).sort(([, a], [, b]) => b - a).slice(0, LINES).map(([name]) => name).sort();
  const line = (series) => names.map((name, index) => ({ name, index, points: series((point) => point[asked.kind][name]) }));
  windowChart.show(line((of) => levels(points, (point) => of(point)?.window_bytes)), now);
  marksChart.show(line((of) => growth(points, (point) => of(point)?.marks)), now);
  keyed($("legend"), names.map((name, index) => ({ name, index })), ({ name, index }) => `${index} ${name}`,
    ({ name, index }) => el("li", { class: `series-${index}` }, el("i", { class: "swatch" }), name), () => {});
}

/** Marks the sides on which columns are cut off. A table that scrolls takes the keyboard focus. */
function hintAt(scroll) {
  const left = scroll.scrollLeft > 1;
  const right = scroll.scrollLeft + scroll.clientWidth < scroll.scrollWidth - 1;
  tell(scroll.parentElement, "data-more", left && right ? "both" : left ? "left" : right ? "right" : null);
  tell(scroll, "tabindex", left || right ? "0" : null);
}

/** A table whose cells are made once and then only filled, from { name, key, kind, fill }. */
function table(id, cells, items, keyOf, change = () => {}) {
  const [head, body] = $(id).children;
  if (!head.firstElementChild) {
    head.append(el("tr", {}, ...cells.map(({ name, kind = "" }) => el("th", { scope: "col", class: kind }, name))));
  }
  keyed(body, items, keyOf,
    () => el("tr", {}, ...cells.map(({ name, key = "", kind = "" }, at) =>
      (at ? el("td", { class: kind, "data-name": name, "data-key": key }) : el("th", { scope: "row", class: kind })))),
    (row, item) => {
      cells.forEach(({ fill }, at) => fill(row.children[at], item));
      change(row, item);
    });
  $(id).hidden = !items.length;
  $(id).closest(".card").lastElementChild.hidden = items.length > 0;
  hintAt($(id).parentElement);
}

const text = (value, title) => (cell, item) => {
  say(cell, value(item));
  if (title) tell(cell, "title", title(item));
};

/** Some text, and smaller text below. */
const two = (first, second) => (cell, item) => {
  if (!cell.firstElementChild) cell.append(el("span"), el("small"));
  say(cell.firstElementChild, first(item));
  say(cell.lastElementChild, second(item));
};

function fillUse(cell, port) {
  if (!cell.firstElementChild) cell.append(el("span"), el("div", { class: "meter" }, el("i")));
  const share = port.max_flows ? port.flows / port.max_flows : 0;
  cell.lastElementChild.hidden = !none(port.failure);
  say(cell.firstElementChild, port.failure ? "–" : `${count(port.flows)} of ${count(port.max_flows)}`);
  cell.lastElementChild.firstElementChild.style.width = `${Math.min(100, share * 100)}%`;
  cell.lastElementChild.classList.toggle("high", share > 0.8);
}

function fillReasons(cell, port) {
  if (!cell.firstElementChild) cell.append(el("span"), el("details", {}, el("summary"), el("ul")));
  const [plain, details] = cell.children;
  plain.hidden = !port.failure && port.counters.length > 0;
  details.hidden = !plain.hidden;
  say(plain, port.failure ?? "nothing");
  say(details.firstElementChild, count(port.counters.reduce((sum, { value }) => sum + value, 0)));
  keyed(details.lastElementChild, port.counters, ({ name }) => name,
    (counter) => el("li", {}, el("b"), el("span", {}, counter.meaning)),
    (item, { value }) => say(item.firstElementChild, count(value)));
}

const perSecond = (kind, name, what) => rate(lately((point) => point[kind][name]?.[what]));

const PORT_COLUMNS = [
  { name: "Port", fill: two((port) => port.port, (port) => (none(port.tenant) ? "" : `tenant ${port.tenant}`)) },
  { name: "Flows", fill: fillUse },
  { name: "Acknowledged", kind: "number", fill: text((port) => (port.failure ? "–" : bits(inBits(lately((point) => point.ports[port.port]?.acked_bytes))))) },
  { name: "Window", kind: "number", fill: text((port) => bytes(port.failure ? null : port.window_bytes)) },
  { name: "Marks/s", kind: "number", fill: text((port) => (port.failure ? "–" : perSecond("ports", port.port, "marks"))) },
  { name: "Untranslated", kind: "full", fill: fillReasons },
];

function fillMode(cell, rule) {
  if (!cell.firstElementChild) cell.append(el("span"), el("small"));
  const [badge, underlay] = cell.children;
  const tone = { enforce: "good", shadow: "doubtful" }[rule.mode] ?? "part";
  tell(badge, "class", `badge ${tone}`);
  say(badge, rule.mode);
  say(underlay, rule.mode === "ignore" ? "" : rule.underlay);
}

const total = (what) => text((rule) => count(rule[what]), (rule) => `${rule[what].toLocaleString()} since the daemon started`);

const RULE_COLUMNS = [
  { name: "Rule", fill: text((rule) => rule.name) },
  { name: "Treatment", fill: fillMode },
  { name: "Live", kind: "number", fill: text((rule) => count(rule.flows)) },
  { name: "Connections", kind: "number", fill: total("connections") },
  { name: "Marks/s", kind: "number", fill: text((rule) => perSecond("rules", rule.name, "marks")) },
  { name: "Marks", kind: "number", fill: total("marks") },
  { name: "Reductions", kind: "number", fill: total("reductions") },
  { name: "Retrans", kind: "number", fill: total("retransmissions") },
  { name: "Drops", kind: "number", fill: total("drops") },
];

function showPorts() {
  const ports = [...snapshot.ports].sort((a, b) => !!b.failure - !!a.failure || (snapshot.ports.length > ROWS ? b.flows - a.flows : 0));
  table("ports", PORT_COLUMNS, ports.slice(0, ROWS), (port) => `${port.port} ${port.index}`, (row, port) =>
    row.classList.toggle("failed", !none(port.failure)));
  say($("ports-title"), ports.length > ROWS ? `Ports: ${ROWS} of ${ports.length}` : "Ports");
}

function showPools() {
  $("pools-part").hidden = !snapshot.pools.length;
  keyed($("pools"), snapshot.pools, (pool) => pool.name,
    (pool) => el("li", {}, el("h3", {}, el("span", {}, pool.name), el("span", { class: "badge" })),
      el("div", { class: "meter", "aria-hidden": "true" }, el("i"), el("b")), el("p"), el("p")),
    (item, pool) => {
      const [title, meter, first, second] = item.children;
      const all = pool.window_bytes ?? pool.most_held_bytes;
      const share = all ? pool.held_bytes / all : 0;
      const most = Math.max(all, pool.most_held_bytes, pool.held_bytes, 1);
      const badge = title.lastElementChild;
      tell(badge, "class", `badge ${none(pool.window_bytes) ? "part" : share > 1 ? "doubtful" : "good"}`);
      say(badge, none(pool.window_bytes) ? "out of use" : `${Math.round(share * 100)} %`);
      meter.classList.toggle("high", share > 1);
      meter.firstElementChild.style.width = `${(pool.held_bytes / most) * 100}%`;
      meter.lastElementChild.style.left = `calc(${(pool.most_held_bytes / most) * 100}% - 2px)`;
      say(first, `${bytes(pool.held_bytes)} held${none(pool.window_bytes) ? "" : ` of ${bytes(pool.window_bytes)}`}, at most ${bytes(pool.most_held_bytes)} so far`);
      say(second, `weight ${pool.weight} · overdrawn ${pool.overdrawn === 1 ? "once" : `${count(pool.overdrawn)} times`}`);
    });
}

/* ---- flows ---- */

function fillSpark(cell, flow) {
  if (!cell.firstElementChild) cell.append(sparkRoot(88, 22, "spark series-0"));
  spark(cell.firstElementChild, levels(flowPoints.get(flow.id) ?? [], (point) => point.window), FLOW_MS, flows.at_unix_ms, 88, 22);
}

function fillEnds(cell, flow) {
  if (!cell.firstElementChild) cell.append(el("button", { type: "button" }), el("small"));
  say(cell.firstElementChild, flow.guest);
  say(cell.lastElementChild, `→ ${flow.peer}${none(flow.vlan) ? "" : ` in VLAN ${flow.vlan}`}`);
  tell(cell.firstElementChild, "aria-pressed", String(flow.id === asked.flow));
  tell(cell.firstElementChild, "aria-label", `${flow.guest} to ${flow.peer}`);
}

/** The cells of a flow: its ends, the columns of the table, and the curve of its window beside it. */
let flowCells = [];

function makeCells() {
  const cell = (column) => ({
    ...column, kind: column.unit === "text" ? "" : "number", fill: text((flow) => written(column, flow)),
  });
  const shown = columns.filter(({ in_table }) => in_table).map(cell);
  const after = shown.findIndex(({ key }) => key === "window_shown_bytes") + 1;
  shown.splice(after, 0, { name: "Two minutes", help: "the window over the last two minutes", fill: fillSpark });
  flowCells = [{ name: "Guest, peer", sort: "guest", help: "the two ends", fill: fillEnds }, ...shown];
}

// One card per flow makes a long page.
if (matchMedia("(max-width: 47.4rem)").matches) asked.top = "25";
const defaults = { ...asked };

function makeHead() {
  const head = $("flows").tHead;
  head.append(el("tr", {}, ...flowCells.map(({ name, sort, help, kind = "" }) => {
    const cell = el("th", { scope: "col", class: kind, title: help }, sort ? el("button", { type: "button" }, name) : name);
    if (sort) {
      cell.dataset.sort = sort;
      cell.firstElementChild.addEventListener("click", () => sortBy(sort));
      $("sort").append(el("option", { value: sort }, name));
    }
    return cell;
  })));
}

function sortBy(sort) {
  const isText = columns.some((column) => column.sort === sort && column.unit === "text");
  if (asked.sort === sort) asked.order = asked.order === "asc" ? "desc" : "asc";
  else Object.assign(asked, { sort, order: isText ? "asc" : "desc" });
  settle();
}

/** Shows the settings, and asks for the flows that they select. */
function settle() {
  for (const cell of $("flows").tHead.rows[0].cells) {
    const order = asked.order === "asc" ? "ascending" : "descending";
    tell(cell, "aria-sort", cell.dataset.sort === asked.sort ? order : null);
  }
  $("sort").value = asked.sort;
  $("top").value = asked.top;
  if ($("filter").value !== asked.filter) $("filter").value = asked.filter;
  document.querySelector(`#kind input[value=${asked.kind}]`).checked = true;
  remember();
  frozen = null;
  askFlows();
}

/** The order of rows while the pointer is over them. */
let frozen = null;

function steady(list) {
  if (!$("flows").tBodies[0].matches(":hover")) {
    frozen = null;
    return list;
  }
  frozen ??= new Map([...$("flows").tBodies[0].rows].map((row, at) => [row.dataset.key, at]));
  const place = (flow) => frozen.get(flow.id) ?? Infinity;
  return list.map((flow, at) => [flow, at]).sort(([a, i], [b, j]) => (place(a) === place(b) ? i - j : place(a) - place(b))).map(([flow]) => flow);
}

function showFlows() {
  const shown = flows.flows.length;
  say($("matching"), asked.filter ? `${shown} of ${flows.matching} that match, of ${flows.total}` : `${shown} of ${flows.total}`);
  table("flows", flowCells, steady(flows.flows), (flow) => flow.id, (row, flow) => row.classList.toggle("on", flow.id === asked.flow));
  showSelected();
}

let lastSelected = null;

function showSelected() {
  const flow = flows.selected;
  if (flow) lastSelected = flow;
  const known = flow ?? (lastSelected?.id === asked.flow ? lastSelected : null);
  $("selected").hidden = !known;
  if (!known) return;
  say($("selected-title"), `${known.guest} → ${known.peer}${flow ? "" : ": has ended"}`);
  keyed($("facts"), columns.filter(({ in_detail }) => in_detail), ({ key }) => key,
    ({ name, key, help }) => el("div", { title: help, "data-fact": key }, el("dt", {}, name), el("dd")),
    (item, column) => say(item.lastElementChild, alone(column, known)));
  const kept = flowPoints.get(known.id) ?? [];
  flowChart.show([
    { name: "shown", index: 0, under: true, points: levels(kept, (point) => point.window) },
    { name: "cwnd", index: 1, points: levels(kept, (point) => point.cwnd) },
  ], flows.at_unix_ms);
  flowMarksChart.show([{ name: "marks", index: 0, points: growth(kept, (point) => point.marks) }], flows.at_unix_ms);
}

function select(id) {
  asked.flow = asked.flow === id ? "" : id;
  if (!asked.flow) lastSelected = null;
  settle();
}

function unselect() {
  const row = [...$("flows").tBodies[0].rows].find((it) => it.dataset.key === asked.flow);
  asked.flow = "";
  lastSelected = null;
  $("selected").hidden = true;
  settle();
  (row?.querySelector("button") ?? $("flows")).focus({ preventScroll: true });
}

/* ---- all of it ---- */

function showHead() {
  const problems = snapshot.problems;
  $("problems").hidden = !problems.length;
  keyed($("problems").lastElementChild, problems, ({ about, what }) => `${about}\n${what}`,
    ({ about, what }) => el("li", {}, el("b", {}, about), what), () => {});
  state(problems.length ? "doubtful" : "good", problems.length ? `${problems.length} problem${problems.length > 1 ? "s" : ""}` : "healthy");
  const edition = snapshot.epoch ? `edition ${snapshot.epoch} of the policy` : "no policy";
  say($("about"), `${edition} · up ${lasting(snapshot.uptime_s)} · version ${snapshot.version}`);
  $("events-part").hidden = !snapshot.events.length;
  const events = snapshot.events.map((event, at) => ({ ...event, at })).reverse();
  keyed($("events"), events, ({ at_unix_ms, what, at }) => `${at_unix_ms} ${what} ${at}`,
    ({ at_unix_ms, what }) => el("li", {}, el("time", { datetime: new Date(at_unix_ms).toISOString() }, clock(at_unix_ms)), el("span", {}, what)), () => {});
}

function state(tone, words) {
  tell($("state"), "class", `badge ${tone}`);
  say($("state"), words);
}

function show() {
  showHead();
  showTiles();
  showCharts();
  showPorts();
  table("rules", RULE_COLUMNS, snapshot.rules.slice(0, ROWS), (rule) => rule.name);
  showPools();
}

let silentSince = null;

function answered() {
  silentSince = null;
  $("silence").hidden = true;
  document.body.classList.remove("stale");
}

function silent(why) {
  silentSince ??= Date.now();
  say($("silence"), `vcc has not answered since ${clock(silentSince)}: ${why}. The page shows older values and tries again.`);
  $("silence").hidden = false;
  document.body.classList.add("stale");
  state("bad", "no answer");
}

async function ask(path) {
  let response;
  try {
    response = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(10_000) });
  } catch {
    throw new Error("it does not listen; check that the daemon is running");
  }
  if (!response.ok) throw new Error((await response.text()).trim() || `status ${response.status}`);
  return response.json();
}

let asking = 0;

async function askFlows() {
  asking += 1;
  const mine = asking;
  const { top, sort, order, filter, flow } = asked;
  const wanted = new URLSearchParams({ top, sort, order, filter, ...(flow && { flow }) });
  try {
    const answer = await ask(`/api/flows.json?${wanted}`);
    // A later request is under way.
    if (mine !== asking) return;
    flows = answer;
    noteFlows();
    showFlows();
  } catch (error) {
    silent(error.message.replace(/[.;]?$/, ""));
  }
}

async function round() {
  if (!paused && !document.hidden) {
    try {
      if (!points.length) {
        const past = await ask("/api/history.json");
        points = past.map(({ at_unix_ms: at, ...levels }) => ({ at, ...levels }));
      }
      snapshot = await ask("/api/snapshot.json");
      answered();
      note();
      show();
      await askFlows();
    } catch (error) {
      silent(error.message.replace(/[.;]?$/, ""));
    }
  }
  setTimeout(round, POLL_MS);
}

function listen() {
  let typing = 0;
  $("filter").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      asked.filter = $("filter").value;
      settle();
    }, 150);
  });
  $("top").addEventListener("change", () => {
    asked.top = $("top").value;
    settle();
  });
  $("sort").addEventListener("change", () => sortBy($("sort").value));
  $("kind").addEventListener("change", (event) => {
    asked.kind = event.target.value;
    remember();
    if (snapshot) showCharts();
  });
  $("pause").addEventListener("click", () => {
    paused = !paused;
    tell($("pause"), "aria-pressed", String(paused));
    say($("pause"), paused ? "Resume" : "Pause");
    if (paused) state("part", "paused");
  });
  $("close").addEventListener("click", unselect);
  $("flows").tBodies[0].addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    // Marking an address to copy it does not open the flow.
    if (row && getSelection().isCollapsed) select(row.dataset.key);
  });
  document.addEventListener("keydown", (event) => {
    const typingNow = event.target.matches("input, select");
    const button = event.target.closest?.("#flows tbody button");
    if (event.key === "/" && !typingNow && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      $("filter").focus();
    } else if (event.key === "Escape" && event.target === $("filter")) {
      event.preventDefault();
      asked.filter = "";
      settle();
      $("filter").blur();
    } else if (event.key === "Escape" && asked.flow) {
      unselect();
    } else if (button && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      const row = button.closest("tr");
      const next = event.key === "ArrowDown" ? row.nextElementSibling : row.previousElementSibling;
      next?.querySelector("button").focus();
    }
  });
}

const windowChart = new Chart($("chart-window"), "Windows shown to guests", bytes, byteTicks, KEPT_MS);
const marksChart = new Chart($("chart-marks"), "Marks per second", rate, ticks, KEPT_MS);
const flowChart = new Chart($("chart-flow"), "Window", bytes, byteTicks, FLOW_MS);
const flowMarksChart = new Chart($("chart-flow-marks"), "Marks per second", rate, ticks, FLOW_MS);

for (const scroll of document.querySelectorAll(".scroll")) {
  scroll.addEventListener("scroll", () => hintAt(scroll), { passive: true });
  new ResizeObserver(() => hintAt(scroll)).observe(scroll);
}
async function begin() {
  try {
    columns = await ask("/api/columns.json");
  } catch (error) {
    silent(error.message.replace(/[.;]?$/, ""));
    setTimeout(begin, POLL_MS);
    return;
  }
  makeCells();
  makeHead();
  recall();
  listen();
  settle();
  round();
}

begin();
