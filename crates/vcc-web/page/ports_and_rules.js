/* The tables of ports and rules. */

const ROWS = 100;

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
