/* Units: the same as in crates/vcc-view/src/units.rs. */

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
