/* The table of flows, and the detail of one. */

function fillSpark(cell, flow) {
  if (!cell.firstElementChild) cell.append(sparkRoot(88, 22, "spark series-0"));
  spark(cell.firstElementChild, levels(flowPoints.get(flow.id) ?? [], (point) => point.window), FLOW_MS, flows.at_unix_ms, 88, 22);
}

function fillEnds(cell, flow) {
  if (!cell.firstElementChild) cell.append(el("button", { type: "button" }), el("small"));
  say(cell.firstElementChild, flow.guest);
  say(cell.lastElementChild, `→ ${flow.peer}${none(flow.vlan) ? "" : ` in VLAN ${flow.vlan}`}`);
  set(cell.firstElementChild, "aria-pressed", String(flow.id === asked.flow));
  set(cell.firstElementChild, "aria-label", `${flow.guest} to ${flow.peer}`);
}

/** The cells of a flow: its ends, the columns of the table, and the curve of its windows behind these. */
let flowCells = [];

const FLOW_CELLS = { port: { brief: true }, goodput_bits_per_s: { brief: true }, limited_by: { brief: true } };

function makeFlows() {
  const shown = cellsOf(columns.flows, FLOW_CELLS);
  const after = shown.findIndex(({ key }) => key === "would_show_bytes") + 1;
  shown.splice(after, 0, { name: "Two minutes", help: "the window over the last two minutes", fill: fillSpark });
  flowCells = [{ name: "Guest, peer", sort: "guest", unit: "text", help: "the two ends", fill: fillEnds }, ...shown];
  flowControls.makeHead(flowCells);
}

const flowControls = new Controls("flows", "", () => {
  frozen = null;
  askFlows();
});

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
  say($("matching"), howMany(shown, flows.matching, flows.total, asked.filter));
  table("flows", flowCells, steady(flows.flows), (flow) => flow.id, {
    sort: asked.sort,
    unknown: flows.unknown,
    change: (row, flow) => row.classList.toggle("on", flow.id === asked.flow),
  });
  say($("no-flow"), flows.why_none ?? "");
  showSelected();
}

let lastSelected = null;
/** The detail is far above the row on a narrow screen. */
let revealed = "";

function showSelected() {
  const flow = flows.selected;
  if (flow) lastSelected = flow;
  const known = flow ?? (lastSelected?.id === asked.flow ? lastSelected : null);
  $("selected").hidden = !known;
  if (!known) return;
  if (known.id !== revealed && NARROW.matches) $("selected").scrollIntoView();
  revealed = known.id;
  say($("selected-title"), `${known.guest} → ${known.peer}${flow ? "" : ": has ended"}`);
  keyed($("facts"), columns.flows.filter(({ in_detail }) => in_detail), ({ key }) => key,
    ({ name, key, help }) => el("div", { title: help, "data-fact": key }, el("dt", {}, name), el("dd")),
    (item, { unit, key }) => say(item.lastElementChild, writeAlone(unit, known[key])));
  const kept = flowPoints.get(known.id) ?? [];
  flowChart.show([
    { name: "shown", index: 0, under: true, points: levels(kept, (point) => point.window) },
    { name: "cwnd", index: 1, points: levels(kept, (point) => point.cwnd) },
  ], flows.at_unix_ms);
  flowMarksChart.show([{ name: "marks", index: 0, points: growth(kept, (point) => point.marks) }], flows.at_unix_ms);
}

function select(id) {
  asked.flow = asked.flow === id ? "" : id;
  if (!asked.flow) {
    lastSelected = null;
    revealed = "";
  }
  flowControls.settle();
}

function unselect() {
  const row = [...$("flows").tBodies[0].rows].find((it) => it.dataset.key === asked.flow);
  asked.flow = "";
  lastSelected = null;
  revealed = "";
  $("selected").hidden = true;
  flowControls.settle();
  (row?.querySelector("button") ?? $("flows")).focus({ preventScroll: !NARROW.matches });
}

const flowChart = new Chart($("chart-flow"), "Window", bytes, byteTicks, FLOW_MS);
const flowMarksChart = new Chart($("chart-flow-marks"), "Marks per second", rate, ticks, FLOW_MS);
