/* Above the tables: the state, problems, totals and the charts. Below them: pools and events. */

const LINES = 6;
/** `tap2` is before `tap10`. */
const BY_NAME = new Intl.Collator("en", { numeric: true });

function showTiles() {
  keyed($("tiles"), columns.totals.filter(({ in_table }) => in_table), ({ key }) => key,
    ({ name, help }) => el("div", { class: "series-0", title: help }, el("dt", {}, name), el("dd", {}, el("span"), el("span", { class: "unit" })), sparkRoot(200, 28)),
    (tile, { key, unit }) => {
      const [number, of] = parts(unit, snapshot.all[key]);
      const [first, second] = tile.querySelectorAll("dd span");
      say(first, number);
      say(second, of);
      spark(tile.lastElementChild, levels(points, (point) => point.all[key]), KEPT_MS, points.at(-1).at, 200, 28);
    });
}

function showCharts() {
  const now = points.at(-1).at;
  const largest = new Map();
  for (const point of points) {
    for (const [name, sums] of Object.entries(point[asked.kind])) {
      largest.set(name, Math.max(largest.get(name) ?? 0, sums.window_bytes, sums.flows ? 1 : 0));
    }
  }
  const names = [...largest].filter(([, most]) => most > 0).sort(([, a], [, b]) => b - a).slice(0, LINES).map(([name]) => name).sort(BY_NAME.compare);
  const line = (series) => names.map((name, index) => ({ name, index, points: series((point) => point[asked.kind][name]) }));
  windowChart.show(line((of) => levels(points, (point) => of(point)?.window_bytes)), now);
  marksChart.show(line((of) => levels(points, (point) => of(point)?.marks_per_s)), now);
  keyed($("legend"), names.map((name, index) => ({ name, index })), ({ name, index }) => `${index} ${name}`,
    ({ name, index }) => el("li", { class: `series-${index}` }, el("i", { class: "swatch" }), name), () => {});
}

function showPools() {
  $("pools-part").hidden = !snapshot.pools.length;
  keyed($("pools"), snapshot.pools, (pool) => JSON.stringify([pool.name, pool.port]),
    (pool) => el("li", {}, el("h3", {}, el("span", {}, pool.port ? `${pool.name} at ${pool.port}` : pool.name), el("span", { class: "badge" })),
      el("div", { class: "meter", "aria-hidden": "true" }, el("i"), el("b")), el("p"), el("p")),
    (item, pool) => {
      const [title, meter, first, second] = item.children;
      const all = pool.window_bytes ?? pool.most_held_bytes;
      const share = all ? pool.held_bytes / all : 0;
      const most = Math.max(all, pool.most_held_bytes, pool.held_bytes, 1);
      const badge = title.lastElementChild;
      set(badge, "class", `badge ${none(pool.window_bytes) ? "part" : share > 1 ? "doubtful" : "good"}`);
      say(badge, none(pool.window_bytes) ? "not in the policy" : `${Math.round(share * 100)} %`);
      meter.classList.toggle("high", share > 1);
      meter.firstElementChild.style.width = `${(pool.held_bytes / most) * 100}%`;
      meter.lastElementChild.style.left = `calc(${(pool.most_held_bytes / most) * 100}% - 2px)`;
      say(first, `${bytes(pool.held_bytes)} held${none(pool.window_bytes) ? "" : ` of ${bytes(pool.window_bytes)}`}, at most ${bytes(pool.most_held_bytes)} so far`);
      say(second, `weight ${pool.weight} · overdrawn ${pool.overdrawn === 1 ? "once" : `${count(pool.overdrawn)} times`}`);
    });
}

function showNotices(id, notices) {
  $(id).hidden = !notices.length;
  keyed($(id).lastElementChild, notices, ({ about, what }) => `${about}\n${what}`,
    ({ about, what }) => el("li", {}, el("b", {}, about), what), () => {});
}

function showHead() {
  const problems = snapshot.problems;
  showNotices("problems", problems);
  showNotices("warnings", snapshot.warnings);
  state(problems.length ? "doubtful" : "good", problems.length ? `${problems.length} problem${problems.length > 1 ? "s" : ""}` : "healthy");
  const edition = snapshot.epoch ? `edition ${snapshot.epoch} of the policy` : "no policy";
  const costs = snapshot.ports.map((port) => port.cost_cpu).filter((cost) => !none(cost));
  const cost = costs.length ? ` · takes ${percent(costs.reduce((sum, it) => sum + it, 0))} of a CPU` : "";
  const tables = none(snapshot.tables_bytes) ? "" : ` · tables ${bytes(snapshot.tables_bytes)}`;
  say($("about"), `${edition} · up ${lasting(snapshot.uptime_s)}${tables}${cost} · version ${snapshot.version}`);
  $("events-part").hidden = !snapshot.events.length;
  const events = snapshot.events.map((event, at) => ({ ...event, at })).reverse();
  keyed($("events"), events, ({ at_unix_ms, what, at }) => `${at_unix_ms} ${what} ${at}`,
    ({ at_unix_ms, what }) => el("li", {}, el("time", { datetime: new Date(at_unix_ms).toISOString() }, clock(at_unix_ms)), el("span", {}, what)), () => {});
}

function state(tone, words) {
  set($("state"), "class", `badge ${tone}`);
  say($("state"), words);
}

const windowChart = new Chart($("chart-window"), "Windows shown to guests", bytes, byteTicks, KEPT_MS);
const marksChart = new Chart($("chart-marks"), "Marks per second", rate, ticks, KEPT_MS);
