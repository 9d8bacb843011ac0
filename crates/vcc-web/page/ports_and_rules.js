/* The tables of ports and rules. */

const ROWS = 100;

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
  flows: { kind: "", fill: fillUse },
  fabric_delay_us: { fill: fillDelays("fabric") },
  guest_delay_us: { fill: fillDelays("guest") },
  untranslated_segments: { kind: "full", fill: fillReasons },
};

const RULE_CELLS = { mode: { fill: fillMode } };

function showPorts() {
  const ports = [...snapshot.ports].sort((a, b) => !!b.failure - !!a.failure || (snapshot.ports.length > ROWS ? b.flows - a.flows : 0));
  table("ports", cellsOf(columns.ports, PORT_CELLS), ports.slice(0, ROWS), (port) => `${port.port} ${port.index}`, (row, port) =>
    row.classList.toggle("failed", !none(port.failure)));
  say($("ports-title"), ports.length > ROWS ? `Ports: ${ROWS} of ${ports.length}` : "Ports");
}

function showRules() {
  table("rules", cellsOf(columns.rules, RULE_CELLS), snapshot.rules.slice(0, ROWS), (rule) => rule.name);
}
