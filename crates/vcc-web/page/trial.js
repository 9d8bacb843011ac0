/* What underlays in shadow mode would change, as `vcc trial` has it. */

const percent = (share) => (none(share) ? "–" : `${(share * 100).toFixed(1)}\u00a0%`);

const trialCell = (name, key, help, text, own = {}) =>
  ({ name, key, help, kind: "number", fill: (cell, sums) => say(cell, text(sums[key])), ...own });

const TRIAL_CELLS = [
  { name: "Port", help: "the device", fill: two(({ name }) => name, () => "") },
  trialCell("Underlay", "underlays", "the congestion control that the fabric would see", (names) => names.join(", "), { kind: "" }),
  trialCell("Connections", "connections", "all in shadow mode", count),
  trialCell("Limited", "limited_connections", "those that had more in flight than the underlay's window", count),
  trialCell("Acked", "acked_bytes", "acknowledged bytes", bytes),
  trialCell("Of bytes", "limited_bytes_share", "the share of these that the underlay would have limited", percent, { brief: true }),
  trialCell("Of time", "limited_time_share", "the share of the connections' time", percent, { brief: true }),
  trialCell("Window", "window_part", "the underlay's window over what was in flight, where that was more: the median", (part) => (none(part) ? "–" : part.toFixed(2))),
  trialCell("Marks", "marks", "congestion marks that the underlay saw", count, { brief: true }),
  trialCell("Reductions", "reductions", "reductions of the underlay's window", count),
  trialCell("Retrans", "retransmissions", "segments that the guests sent again, for losses", count),
  trialCell("srtt", "srtt_us", "the median round trip", (us) => write("us", us)),
  trialCell("Queue", "queue_us", "by how much it is above the least", (us) => write("us", us)),
];

function showTrial() {
  const { trial } = snapshot;
  $("trial-part").hidden = !trial;
  if (!trial) return;
  const ports = trial.ports.slice(0, asked["ports-top"]);
  const rows = trial.ports.length > 1 ? [...ports, trial.total] : ports;
  table("trial", TRIAL_CELLS, rows, ({ name }) => name, { change: (row, { name }) => unfold(row, name) });
  say($("trial-length"), `${lasting(trial.lasted_s)}, ${trial.reads} reads`);
  say($("trial-conclusion"), trial.conclusion);
}
