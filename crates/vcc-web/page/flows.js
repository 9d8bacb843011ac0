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

/** The cells of a flow: its ends, the columns of the table, and the curve of its window beside it. */
let flowCells = [];

function makeCells() {
  const shown = cellsOf(columns.flows);
  const after = shown.findIndex(({ key }) => key === "window_shown_bytes") + 1;
  shown.splice(after, 0, { name: "Two minutes", help: "the window over the last two minutes", fill: fillSpark });
  flowCells = [{ name: "Guest, peer", sort: "guest", help: "the two ends", fill: fillEnds }, ...shown];
}

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
  const isText = columns.flows.some((column) => column.sort === sort && column.unit === "text");
  if (asked.sort === sort) asked.order = asked.order === "asc" ? "desc" : "asc";
  else Object.assign(asked, { sort, order: isText ? "asc" : "desc" });
  settle();
}

/** Shows the settings, and asks for the flows that they select. */
function settle() {
  for (const cell of $("flows").tHead.rows[0].cells) {
    const order = asked.order === "asc" ? "ascending" : "descending";
    set(cell, "aria-sort", cell.dataset.sort === asked.sort ? order : null);
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

const flowChart = new Chart($("chart-flow"), "Window", bytes, byteTicks, FLOW_MS);
const flowMarksChart = new Chart($("chart-flow-marks"), "Marks per second", rate, ticks, FLOW_MS);
