/* What was seen, over time. */

const KEPT_MS = 10 * 60 * 1000;
/** The daemon keeps no history of a flow: a chart has what this page has seen. */
const FLOW_MS = 2 * 60 * 1000;
/** A longer gap between two points is not drawn over. */
const GAP_MS = 30 * 1000;
/** Marks per second of a flow are means over this time: marks come in bursts. */
const RATE_MS = 10 * 1000;

/** The columns of flows, ports, rules and totals: { name, key, unit, help, sort, in_table, in_detail }. */
let columns = { totals: [], ports: [], rules: [], flows: [] };
/** Points of { at, all, ports: { name: sums }, rules: { name: sums } }; sums have the keys of totals. */
let points = [];
/** For each flow: points of { at, window, cwnd, marks }. */
const flowPoints = new Map();
let snapshot = null;
let flows = null;

const pointOf = ({ at_unix_ms: at, ...sums }) => ({ at, ...sums });

function note() {
  const point = pointOf(snapshot.point);
  if (points.length && points.at(-1).at >= point.at) return;
  points.push(point);
  points = points.filter(({ at }) => at > point.at - KEPT_MS);
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
