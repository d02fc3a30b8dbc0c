// The time line: accuracy and drift of the runs over all rounds, the rounds that have a landscape, events, and the handle.

const SIDES = { left: 58, right: 18, top: 16, gap: 12, bottom: 22 };

class TimeLine {
  constructor(stage) {
    this.stage = stage;
    this.drift = "client_variance";
    this.play = make("button", { type: "button", class: "play", "aria-pressed": "false", click: () => stage.togglePlay() }, "▶ Play");
    this.pick = make("select", { "aria-label": "Second curve of the time line", change: (event) => { this.drift = event.target.value; this.draw(); } },
      ...Object.entries(stage.scene.series).filter(([name]) => name !== "accuracy" && stage.runs.some((run) => run.curves[name]))
        .map(([name, { words }]) => make("option", { value: name, selected: name === this.drift }, words)));
    this.at = make("output", { class: "round-at" });
    this.plot = shape("svg", { class: "curves", role: "slider", tabindex: 0, "aria-label": "Round on the stage" });
    this.element = make("section", { class: "timeline", "aria-label": "Time line" }, make("div", { class: "timeline-side" }, this.play, this.at, this.pick), this.plot);
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.plot);
  }

  get rounds() { return [this.stage.firstRound, Math.max(this.stage.lastRound, this.stage.firstRound + 1)]; }
  x(round) {
    const [first, last] = this.rounds;
    return SIDES.left + ((round - first) / (last - first)) * (this.width - SIDES.left - SIDES.right);
  }

  draw() {
    [this.width, this.height] = [this.plot.clientWidth || 600, this.plot.clientHeight || 118];
    const { stage } = this, tall = this.height - SIDES.top - SIDES.gap - SIDES.bottom;
    const bands = [["accuracy", SIDES.top, 0.55 * tall], [this.drift, SIDES.top + 0.55 * tall + SIDES.gap, 0.45 * tall]];
    this.plot.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    const parts = bands.flatMap(([name, top, height]) => this.band(name, top, height));
    const base = this.height - SIDES.bottom;
    for (const round of stage.rounds) parts.push(shape("circle", { cx: this.x(round), cy: base + 4, r: 2.6, class: "has" }));
    const [first, last] = this.rounds, step = roundStep(last - first, this.width / 70);
    for (let round = Math.ceil(first / step) * step; round <= last; round += step) {
      parts.push(shape("text", { x: this.x(round), y: this.height - 4, "text-anchor": "middle", class: "tick" }, String(round)));
    }
    parts.push(...this.events(base));
    this.line = shape("line", { y1: 6, y2: base + 4, class: "handle" });
    this.knob = shape("circle", { cy: base + 4, r: 7, class: "handle-knob" });
    this.plot.replaceChildren(...parts, this.line, this.knob);
    this.move(stage.state.round);
  }

  band(name, top, height) {
    const { stage } = this, { words, log } = stage.scene.series[name];
    const scaled = (value) => (log ? (value > 0 ? Math.log10(value) : NaN) : value);
    const on = new Set(stage.state.runs), shown = stage.runs.filter((run) => run.curves[name]);
    const values = shown.flatMap((run) => run.curves[name].map(scaled)).filter(Number.isFinite);
    if (!values.length) return [shape("text", { x: SIDES.left, y: top + 14, class: "tick" }, `${words}: not recorded`)];
    const [low, high] = [Math.min(...values), Math.max(...values)], y = (value) => top + height - ((value - low) / (high - low || 1)) * height;
    const text = (value) => (name === "accuracy" ? `${(100 * value).toFixed(0)} %` : written(log ? 10 ** value : value, 2).replace("-", "−"));
    const parts = [shape("rect", { x: SIDES.left, y: top, width: this.width - SIDES.left - SIDES.right, height, class: "band" }),
      shape("text", { x: SIDES.left - 6, y: top + 9, "text-anchor": "end", class: "tick" }, text(high)),
      shape("text", { x: SIDES.left - 6, y: top + height, "text-anchor": "end", class: "tick" }, text(low))];
    for (const run of [...shown].sort((a, b) => on.has(a.key) - on.has(b.key))) {
      const path = pathOf(run.rounds.map((round, i) => [this.x(round), y(scaled(run.curves[name][i]))]));
      const strong = on.has(run.key), dash = run.dash.length ? run.dash.map((length) => length * 1.6).join(" ") : null;
      parts.push(shape("path", { d: path, fill: "none", stroke: run.shade, "stroke-width": run.key === stage.state.look ? 2.6 : strong ? 1.8 : 1, opacity: strong ? 1 : 0.35, "stroke-dasharray": dash }));
    }
    parts.push(shape("text", { x: SIDES.left + 6, y: top + 11, class: "band-name" }, words + (log ? ", logarithmic" : "")));
    return parts;
  }

  // Flags where something begins, of the runs on the stage.
  events(base) {
    return this.stage.shown.flatMap((run) => run.events.map((event) => {
      const x = this.x(event.round), said = `${run.label}, round ${event.round}: ${event.words}`;
      return shape("g", { class: "event" }, shape("title", {}, said), shape("line", { x1: x, x2: x, y1: 12, y2: base, stroke: run.shade }),
        shape("path", { d: `M${x} 3h9l-3 4l3 4h-9z`, fill: run.shade }), shape("text", { x: x + 12, y: 11, class: "tick" }, event.words.split(/[:[]/)[0].trim()));
    }));
  }

  // The handle alone, at any place between two rounds.
  move(round) {
    if (!this.line) return;
    for (const side of ["x1", "x2"]) this.line.setAttribute(side, this.x(round));
    this.knob.setAttribute("cx", this.x(round));
    this.at.textContent = `Round ${this.stage.state.round}`;
    const [first, last] = this.rounds, now = { valuemin: first, valuemax: last, valuenow: this.stage.state.round, valuetext: `round ${this.stage.state.round}` };
    for (const [name, value] of Object.entries(now)) this.plot.setAttribute(`aria-${name}`, value);
  }

  listen() {
    const to = (event) => {
      const box = this.plot.getBoundingClientRect(), [first, last] = this.rounds;
      const share = (event.clientX - box.left - SIDES.left) / (box.width - SIDES.left - SIDES.right);
      this.stage.goTo(this.stage.nearest(first + share * (last - first)), { drag: event.type === "pointermove" });
    };
    this.plot.addEventListener("pointerdown", (event) => { this.plot.setPointerCapture(event.pointerId); this.stage.stop(); to(event); });
    this.plot.addEventListener("pointermove", (event) => { if (event.buttons) to(event); });
    this.plot.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: 3, PageDown: -3, Home: -1e6, End: 1e6 }[event.key];
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      this.stage.stop();
      this.stage.step(step);
    });
  }
}

// A round number of rounds between ticks.
function roundStep(span, most) {
  const raw = Math.max(span / most, 1), power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].find((times) => times * power >= raw) * power;
}
