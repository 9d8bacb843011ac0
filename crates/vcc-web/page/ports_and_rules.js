/* The tables of ports and rules. */

const RULES = 100;

/** Columns that are known only while the kernel counts run times; the head of the page has their sum. */
const COSTS = ["cost_cpu", "cost_from_guest_ns", "cost_to_guest_ns"];

/** Windows in which ports, beside rules, have room for them. */
const WIDE = matchMedia("(min-width: 2200px)");

function fillUse(cell, port) {
  if (!cell.firstElementChild) cell.append(el("span"), el("div", { class: "meter" }, el("i")));
  const share = port.max_flows ? port.flows / port.max_flows : 0;
  cell.lastElementChild.hidden = !none(port.failure);
  say(cell.firstElementChild, none(port.flows) ? "–" : `${count(port.flows)} of ${count(port.max_flows)}`);
  cell.lastElementChild.firstElementChild.style.width = `${Math.min(100, share * 100)}%`;
  cell.lastElementChild.classList.toggle("high", share > 0.8);
}

function fillReasons(cell, port) {
  if (!cell.firstElementChild) cell.append(el("span"), el("details", {}, el("summary"), el("ul")));
  const [plain, details] = cell.children;
  plain.hidden = !port.failure && port.counters.length > 0;
  details.hidden = !plain.hidden;
  say(plain, port.failure ?? "nothing");
  say(details.firstElementChild, count(port.untranslated_segments));
  keyed(details.lastElementChild, port.counters, ({ name }) => name,
    (counter) => el("li", {}, el("b"), el("span", {}, counter.meaning)),
    (item, { value }) => say(item.firstElementChild, count(value)));
}

function fillMode(cell, rule) {
  if (!cell.firstElementChild) cell.append(el("span"), el("small"));
  const [badge, underlay] = cell.children;
  const tone = { enforce: "good", shadow: "doubtful" }[rule.mode] ?? "part";
  set(badge, "class", `badge ${tone}`);
  say(badge, rule.mode);
  say(underlay, rule.mode === "ignore" ? "" : rule.underlay);
}

/** The median, and below it how many delays there were of each length; of both parts on one scale. */
const fillDelays = (part) => (cell, port) => {
  if (!cell.firstElementChild) cell.append(el("span"), svg("svg", { class: "histogram", viewBox: "0 0 90 18", preserveAspectRatio: "none", role: "img" }));
  const [median, picture] = cell.children;
  say(median, write("us", port[`${part}_delay_us`]));
  const counts = port.delays?.[part].counts ?? [];
  const most = Math.max(...counts);
  picture.toggleAttribute("hidden", !(most > 0));
  if (!(most > 0)) return;
  const width = 90 / counts.length;
  put(picture, counts.flatMap((number, at) => {
    // What is rare is what is looked for: one delay among thousands is seen.
    const height = number ? 2 + 16 * (Math.log1p(number) / Math.log1p(most)) : 0;
    return height ? [svg("rect", { x: at * width, y: 18 - height, width: width - 0.8, height })] : [];
  }));
  const upTo = (at) => port.delays.upper_us[at] ?? Infinity;
  const listed = counts.flatMap((number, at) => (number ? [`${count(number)} ${upTo(at) === Infinity ? `over ${write("us", upTo(at - 1))}` : `to ${write("us", upTo(at))}`}`] : []));
  set(picture, "aria-label", `Delays: ${listed.join(", ")}`);
  set(cell, "title", listed.join("\n"));
};

const PORT_CELLS = {
  port: { fill: two((port) => port.port, (port) => (none(port.tenant) ? "" : `tenant ${port.tenant}`)) },
  flows: { kind: "", fill: fillUse, brief: true },
  goodput_bits_per_s: { brief: true },
  marks_per_s: { brief: true },
  fabric_delay_us: { fill: fillDelays("fabric") },
  guest_delay_us: { fill: fillDelays("guest") },
  untranslated_segments: { kind: "full", fill: fillReasons },
};

const RULE_CELLS = {
  name: { fill: two((rule) => rule.name, () => "") },
  mode: { fill: fillMode, brief: true },
  flows: { brief: true },
  marks_per_s: { brief: true },
};

let portCells = [];
let ruleCells = [];

function makePortsAndRules() {
  portCells = cellsOf(columns.ports, PORT_CELLS).map((cell) => ({ ...cell, sort: cell.key }));
  ruleCells = cellsOf(columns.rules, RULE_CELLS);
  portControls.makeHead(portCells);
  makeHead("rules", ruleCells);
  makeHead("trial", TRIAL_CELLS);
}

const portText = ({ port, tenant, mode, underlay, failure }) => [port, tenant, mode, underlay, failure].join("\n").toLowerCase();

/** Those that cannot be read come first. Unknown values are last in both directions, and equal ones are in the daemon's
 * order, by name. */
function orderedPorts() {
  const [sort, direction] = [asked["ports-sort"], asked["ports-order"] === "asc" ? 1 : -1];
  const words = asked["ports-filter"].toLowerCase().split(/\s+/);
  const found = snapshot.ports.map((port, at) => ({ port, at })).filter(({ port }) => words.every((word) => portText(port).includes(word)));
  const value = ({ port, at }) => (sort === "port" ? at : port[sort]);
  return found.sort((a, b) => !!b.port.failure - !!a.port.failure || none(value(a)) - none(value(b))
    || direction * (value(a) - value(b)) || a.at - b.at).map(({ port }) => port);
}

function showPorts() {
  if (!snapshot) return;
  const ports = orderedPorts();
  const shown = ports.slice(0, asked["ports-top"]);
  const unknown = COSTS.filter((key) => !WIDE.matches || snapshot.ports.every((port) => none(port[key])));
  table("ports", portCells, shown, (port) => `${port.port} ${port.index}`, {
    sort: asked["ports-sort"],
    unknown,
    change: (row, port) => {
      row.classList.toggle("failed", !none(port.failure));
      unfold(row, port.port);
    },
  });
  say($("ports-matching"), howMany(shown.length, ports.length, snapshot.ports.length, asked["ports-filter"]));
  say($("no-port"), snapshot.ports.length ? "No port matches the filter." : "There is no port yet.");
}

const portControls = new Controls("ports", "ports-", showPorts);

function showRules() {
  table("rules", ruleCells, snapshot.rules.slice(0, RULES), (rule) => rule.name, { change: (row, rule) => unfold(row, rule.name) });
}
