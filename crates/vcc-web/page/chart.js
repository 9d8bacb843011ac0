/* Charts over time. */

function ticks(max) {
  const rough = Math.max(max, 1e-9) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough) * power;
  return Array.from({ length: Math.ceil(max / step - 1e-9) + 1 || 2 }, (_, at) => at * step);
}

/** For bytes: powers of two, whose labels are short. */
function byteTicks(max) {
  const step = 2 ** Math.ceil(Math.log2(Math.max(max, 4) / 4));
  return Array.from({ length: Math.ceil(max / step) + 1 }, (_, at) => at * step);
}

/** Splits at gaps. */
function runs(series) {
  const found = [];
  let run = [];
  let last = null;
  for (const [at, value] of series) {
    if (value === null || (last !== null && at - last > GAP_MS)) {
      if (run.length) found.push(run);
      run = [];
    }
    if (value !== null) {
      run.push([at, value]);
      last = at;
    }
  }
  if (run.length) found.push(run);
  return found;
}

class Chart {
  constructor(host, title, format, ticksOf, spanMs) {
    Object.assign(this, { host, title, format, ticksOf, spanMs, lines: [], now: 0, cross: null });
    this.root = svg("svg", { role: "img", tabindex: "0" });
    this.readout = el("div", { class: "readout", hidden: "" });
    host.append(this.root, this.readout);
    new ResizeObserver(() => this.draw()).observe(host);
    this.root.addEventListener("pointermove", (event) => this.point(this.timeAt(event.offsetX)));
    this.root.addEventListener("pointerleave", () => this.point(null));
    this.root.addEventListener("blur", () => this.point(null));
    this.root.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -5000, ArrowRight: 5000 }[event.key];
      if (!step) return;
      event.preventDefault();
      this.point((this.cross ?? this.now) + step);
    });
  }

  /** Lines of { name, index, under, points: [[at, value]] }; one under the others is broad. */
  show(lines, now) {
    Object.assign(this, { lines, now });
    this.draw();
  }

  point(at) {
    this.cross = at === null ? null : Math.min(this.now, Math.max(this.now - this.spanMs, at));
    this.draw();
  }

  timeAt(x) {
    return this.now - this.spanMs + ((x - this.left) / (this.right - this.left)) * this.spanMs;
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.host;
    if (!width || !this.now) return;
    const values = this.lines.flatMap((line) => line.points.map(([, value]) => value)).filter((value) => !none(value));
    const steps = this.ticksOf(Math.max(0, ...values));
    const top = steps.at(-1) || 1;
    const labels = steps.map((step) => this.format(step));
    this.left = 10 + 6.4 * Math.max(...labels.map((label) => label.length));
    this.right = width - 8;
    const [upper, lower] = [8, height - 20];
    const x = (at) => this.left + ((at - this.now + this.spanMs) / this.spanMs) * (this.right - this.left);
    const y = (value) => lower - (value / top) * (lower - upper);
    const parts = [];
    steps.forEach((step, at) => {
      parts.push(svg("line", { class: at ? "grid" : "axis", x1: this.left, x2: this.right, y1: y(step), y2: y(step) }));
      parts.push(svg("text", { x: this.left - 6, y: y(step) + 4, "text-anchor": "end" }, labels[at]));
    });
    const most = this.spanMs / 60_000;
    const parted = width < 420 ? 2 : most === 10 ? 5 : 4;
    for (let part = 0; part <= parted; part += 1) {
      const ago = (most * part) / parted;
      const anchor = ago === most ? "start" : ago === 0 ? "end" : "middle";
      const text = ago ? `−${ago} min` : "now";
      parts.push(svg("text", { x: x(this.now - ago * 60_000), y: height - 5, "text-anchor": anchor }, text));
    }
    for (const { index, under, points: series } of this.lines) {
      const line = svg("g", { class: `series-${index}${under ? " under" : ""}` });
      for (const run of runs(series.filter(([at]) => at >= this.now - this.spanMs))) {
        const path = run.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
        if (this.lines.length === 1) {
          const [first, last] = [x(run[0][0]), x(run.at(-1)[0])];
          line.append(svg("polygon", { points: `${first},${lower} ${path.join(" ")} ${last},${lower}` }));
        }
        if (path.length === 1) line.append(svg("circle", { cx: x(run[0][0]), cy: y(run[0][1]), r: 1.5, fill: "var(--colour)" }));
        line.append(svg("polyline", { points: path.join(" ") }));
      }
      parts.push(line);
    }
    if (!values.length) {
      const middle = { x: (this.left + this.right) / 2, y: (upper + lower) / 2, "text-anchor": "middle" };
      parts.push(svg("text", middle, "no data yet"));
    }
    this.read(parts, x, upper, lower, width);
    put(this.root, parts);
    const latest = this.lines.map(({ name, points: series }) => `${name} ${this.format(series.at(-1)?.[1] ?? null)}`);
    set(this.root, "aria-label", `${this.title}, now: ${latest.join(", ") || "nothing"}`);
  }

  read(parts, x, upper, lower, width) {
    this.readout.hidden = this.cross === null || !this.lines.length;
    if (this.readout.hidden) return;
    const at = x(this.cross);
    parts.push(svg("line", { class: "cross", x1: at, x2: at, y1: upper, y2: lower }));
    const near = (series) => series.reduce((best, point) =>
      (Math.abs(point[0] - this.cross) < Math.abs((best?.[0] ?? Infinity) - this.cross) ? point : best), null);
    const rows = this.lines.map(({ name, index, points: series }) => {
      const point = near(series);
      const value = point && Math.abs(point[0] - this.cross) < GAP_MS ? point[1] : null;
      const label = el("span", { class: `series-${index}` }, el("i", { class: "swatch" }), name);
      return el("div", {}, label, el("b", {}, none(value) ? "–" : this.format(value)));
    });
    put(this.readout, [el("div", { class: "quiet" }, clock(this.cross)), ...rows]);
    const leftHalf = at < width / 2;
    this.readout.style.left = leftHalf ? `${at + 10}px` : "auto";
    this.readout.style.right = leftHalf ? "auto" : `${width - at + 10}px`;
  }
}

function spark(root, series, spanMs, now, width, height) {
  const shown = series.filter(([at]) => at >= now - spanMs);
  const top = Math.max(1e-9, ...shown.map(([, value]) => value ?? 0));
  const lines = runs(shown).map((run) => {
    const path = run.map(([at, value]) =>
      `${(width * (1 - (now - at) / spanMs)).toFixed(1)},${(height - 1 - (value / top) * (height - 2)).toFixed(1)}`);
    return svg("polyline", { points: path.join(" ") });
  });
  put(root, lines);
}

const sparkRoot = (width, height, name) =>
  svg("svg", { class: name, viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
