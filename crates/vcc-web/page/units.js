/* Numbers in units, and times. */

/** By name: { units, step, separator, decimals, has_whole, nouns }, as vcc-view has them. */
let units = {};

const none = (value) => value === null || value === undefined;

/** Three significant digits. */
function digits(value) {
  if (value === 0) return "0";
  return value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

/** A number and its unit. */
function parts(name, value) {
  if (none(value)) return ["–", ""];
  const unit = units[name];
  if (!unit) return [String(value), ""];
  let at = 0;
  // A value that would be rounded up to a whole step has the next unit.
  while (value >= unit.step - 0.5 && at < unit.units.length - 1) {
    value /= unit.step;
    at += 1;
  }
  const isWhole = unit.has_whole && at === 0 && Number.isInteger(value);
  const number = none(unit.decimals) ? (isWhole ? String(value) : digits(value)) : value.toFixed(unit.decimals);
  return [number, unit.units[at]];
}

function write(name, value) {
  const [number, unit] = parts(name, value);
  return unit ? `${number}${units[name].separator.replace(" ", "\u00a0")}${unit}` : number;
}

/** Writes a value that has no heading. */
function writeAlone(name, value) {
  const nouns = units[name]?.nouns;
  return nouns && !none(value) ? `${write(name, value)} ${nouns[value === 1 ? 0 : 1]}` : write(name, value);
}

/** For a list that may be cut and filtered. */
function howMany(shown, matching, total, filter) {
  if (!total) return "";
  return filter ? `${shown} of ${matching} that match, of ${total}` : `${shown} of ${total}`;
}

const bytes = (value) => write("bytes", value);
const count = (value) => write("count", value);
/** Writes a rate for an axis whose title has the unit. */
const rate = (value) => (none(value) ? "–" : value === 0 ? "0" : value < 10 ? String(+value.toFixed(value < 1 ? 2 : 1)) : count(Math.round(value)));
const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

function lasting(seconds) {
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = Math.max(0, units.findIndex(([, size]) => seconds >= size));
  const [unit, size] = units[first === -1 ? 3 : first];
  const [next, small] = units[Math.min(first + 1, 3)];
  const rest = Math.floor((seconds % size) / small);
  return `${Math.floor(seconds / size)} ${unit}${rest && next !== unit ? ` ${rest} ${next}` : ""}`;
}
