// The time line: two numbers of the runs over all rounds, the rounds that have a landscape, events, and the handle.

const SIDES = { left: 58, right: 18, top: 16, gap: 12, bottom: 22 }, WIDE = 15, RULER = 60; // px; WIDE: of a flag without words; RULER: height below which there are no curves

class TimeLine {
  constructor(stage) {
    this.stage = stage;
    this.play = button({ class: "play", "aria-pressed": "false", click: () => stage.player.toggle() }, "▶ Play");
    this.picks = { top: picker("First curve of the time line", [], "", (top) => stage.set({ top })), below: picker("Second curve of the time line", [], "", (below) => stage.set({ below })) };
    this.smooth = picker("Smoothing of the curves", SMOOTH.map((number) => [number, number === 1 ? "not smoothed" : `mean of ${number} rounds`]), 1, (number) => stage.set({ smooth: Number(number) }));
    this.all = button({ hidden: true, click: () => stage.set({ span: null }) }, "All rounds");
    this.last = make("input", { type: "checkbox", change: (event) => { stage.set({ follow: event.target.checked }); stage.player.catchUp(); } });
    this.at = make("output", { class: "round-at" });
    this.plot = shape("svg", { class: "curves", role: "slider", tabindex: 0, "aria-label": "Round on the stage", "aria-description": "Arrow keys step through the rounds; plus and minus zoom, 0 shows all" });
    this.flags = shape("svg", { class: "flags" });
    this.drawer = make("details", { class: "picks" }, make("summary", {}, "Curves"), make("div", {}, this.picks.top, this.picks.below, this.smooth));
    const follow = stage.link && make("label", { class: "small" }, this.last, " follow the last round");
    this.element = make("section", { class: "timeline", "aria-label": "Time line" }, make("div", { class: "timeline-side" }, this.play, this.at, this.all, this.drawer, follow), make("div", { class: "track" }, this.plot, this.flags));
    const narrow = matchMedia(`(max-width: ${NARROW}px)`), open = () => { this.drawer.open = !narrow.matches; };
    narrow.addEventListener("change", open);
    open();
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.plot);
  }

  get rounds() {
    const { firstRound, lastRound, state } = this.stage, whole = [firstRound, Math.max(lastRound, firstRound + 1)];
    return state.span && state.span[0] < whole[1] ? [Math.max(state.span[0], whole[0]), Math.min(state.span[1], whole[1])] : whole;
  }
  x(round) {
    const [first, last] = this.rounds;
    return SIDES.left + ((round - first) / (last - first)) * (this.width - SIDES.left - SIDES.right);
  }

  // Numbers that can be shown: {name: {words, log}}.
  get numbers() {
    const { stage } = this, own = Object.entries(stage.scene.series).filter(([name]) => stage.runs.some((run) => run.curves[name]));
    const more = stage.link && stage.looked.rounds.length ? stage.asks.want("numbers", { run: stage.memberOf(stage.looked) }).value || [] : [];
    return { ...Object.fromEntries(own), ...Object.fromEntries(more.map((one) => [one.name, one])) };
  }

  // Rounds and values of a number of a run, means over its seeds with their ends (lowest and highest); null while it is
  // read, or where there is none.
  curve(run, name) {
    const { stage } = this, one = stage.state.seeds[run.key];
    if (run.curves[name] && !one) return { rounds: run.rounds, values: run.curves[name], ends: run.ends[name] };
    if (!stage.link || !stage.state.runs.includes(run.key)) return null;
    const answer = stage.asks.want("series", { runs: one ? [one] : (run.names || [{ name: run.key }]).map((member) => member.name), name }).value;
    return answer ? stage.land.remember(answer, "curve", () => overSeeds(Object.values(answer).filter((member) => member.values))) : null;
  }

  draw() {
    const { stage } = this, { state } = stage;
    if (!stage.runs.length) return;
    [this.width, this.height] = [this.plot.clientWidth || 600, this.plot.clientHeight || 118];
    const numbers = this.numbers, tall = this.height - SIDES.top - SIDES.gap - SIDES.bottom;
    const places = this.height < RULER ? [] : this.height < 100 ? [[state.top, SIDES.top, tall + SIDES.gap]] : [[state.top, SIDES.top, 0.55 * tall], [state.below, SIDES.top + 0.55 * tall + SIDES.gap, 0.45 * tall]];
    const bands = places.map(([name, top, height]) => ({ name, top, height, about: numbers[name] || stage.scene.series[name] || { words: name, log: false }, curves: stage.runs.map((run) => ({ run, curve: this.curve(run, name) })).filter(({ run, curve }) => curve && (run.state !== "diverged" || state.runs.includes(run.key))) }));
    this.offer(numbers);
    this.check(bands, numbers);
    const alarms = stage.shown.map((run) => stage.why.charts.alarms(run));
    const drawnFrom = [this.width, this.height, stage.version, state.runs, state.look, state.top, state.below, state.smooth, state.span, state.seeds, stage.dark.matches, stage.rounds.length, alarms, bands.map(({ curves }) => curves.map(({ run }) => run.key))];
    if (isNew(this, drawnFrom)) {
      this.plot.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
      const parts = bands.flatMap((band) => this.band(band)), base = this.height - SIDES.bottom, [first, last] = this.rounds, within = (round) => round >= first && round <= last;
      for (const round of stage.rounds.filter(within)) parts.push(shape("circle", { cx: this.x(round), cy: base + 4, r: stage.rounds.length > 200 ? 1.2 : 2.6, class: "has" }));
      const step = roundStep(Math.max((last - first) / (this.width / 70), 1));
      for (let round = Math.ceil(first / step) * step; round <= Math.min(last, stage.lastRound); round += step) parts.push(shape("text", { x: this.x(round), y: this.height - 4, "text-anchor": "middle", class: "tick" }, String(round)));
      const flags = this.events(within, alarms);
      for (const { run, span } of flags) if (span) parts.push(shape("rect", { class: "event-span", x: this.x(Math.max(span[0], first)), y: SIDES.top, width: Math.max(this.x(Math.min(span[1], last)) - this.x(Math.max(span[0], first)), 2), height: base - SIDES.top, fill: run.shade }));
      parts.push(...flags.map(({ x, run }) => shape("line", { class: "event-line", x1: x, x2: x, y1: 12, y2: base, stroke: run.shade })));
      this.flags.setAttribute("viewBox", `0 0 ${this.width} 15`);
      this.flags.replaceChildren(...flags.map(({ flag }) => flag));
      oneStop(this.flags, ".event");
      this.line = shape("line", { y1: 6, y2: base + 4, class: "handle" });
      this.knob = shape("circle", { cy: base + 4, r: 7, class: "handle-knob" });
      this.plot.replaceChildren(shape("defs", {}, shape("clipPath", { id: stage.id("span") }, shape("rect", { x: SIDES.left, y: 0, width: Math.max(this.width - SIDES.left - SIDES.right + 4, 0), height: this.height }))), ...parts, this.line, this.knob);
    }
    this.all.hidden = !state.span;
    this.last.checked = state.follow;
    this.smooth.value = String(state.smooth);
    this.move(state.round);
  }

  // What an address says of the curves, once all of them are read: numbers that a run here has.
  check(bands, numbers) {
    const { stage } = this, absent = ["top", "below"].filter((field) => { const name = stage.state[field]; return name !== PLAIN[field] && !numbers[name] && !bands.some((band) => band.name === name && band.curves.length); });
    if (!stage.uncheckedCurves || !bands.length || [...stage.asks.entries.values()].some(({ kind, pending }) => pending && ["numbers", "series"].includes(kind))) return;
    stage.uncheckedCurves = false;
    if (!absent.length) return;
    stage.say([stage.notice, ...absent.map((field) => `There is no number ${stage.state[field].slice(0, 60)} here: the time line shows ${PLAIN[field].replaceAll("_", " ")}.`)].filter(Boolean).join(" "));
    for (const field of absent) stage.state[field] = PLAIN[field];
    stage.write(true);
    stage.answered();
  }

  offer(numbers) {
    const names = Object.keys(numbers);
    if (names.join() !== this.offered) {
      this.offered = names.join();
      for (const select of Object.values(this.picks)) select.replaceChildren(...names.map((name) => make("option", { value: name }, numbers[name].words)));
    }
    for (const [field, select] of Object.entries(this.picks)) {
      select.value = this.stage.state[field];
      select.title = meanings(numbers[select.value]?.words || "", this.stage.scene.terms).trim();
    }
  }

  band({ name, top, height, about: { words, log }, curves }) {
    const { stage } = this, { smooth } = stage.state, on = new Set(stage.state.runs), [first, last] = this.rounds;
    const scaled = (value) => (log ? (value > 0 ? Math.log10(value) : NaN) : value);
    const of = (rounds, numbers) => rounds.map((round, i) => [round, scaled(mean(numbers, i, smooth))]);
    const lines = curves.map(({ run, curve: { rounds, values: own, ends } }) => ({ run, points: of(rounds, own), ends: (ends || []).map((end) => of(rounds, end)) }));
    const ticked = lines.filter(({ run }) => on.has(run.key)), values = (ticked.length ? ticked : lines).flatMap(({ points, ends }) => [points, ...ends]).flatMap((points) => points.filter(([round]) => round >= first && round <= last).map(([, value]) => value)).filter(Number.isFinite);
    if (!values.length) return [shape("text", { x: SIDES.left, y: top + 14, class: "tick" }, `${words}: ${stage.asks.wanted.size && stage.link ? "not recorded, or being read" : "not recorded"}`)];
    const [low, high] = rangeOf(values), y = (value) => (value < low || value > high ? NaN : top + height - (high > low ? (value - low) / (high - low) : 0.5) * height);
    const text = (value, more) => (name === "accuracy" ? `${(100 * value).toFixed(more)} %` : powered(written(log ? 10 ** value : value, 2 + more)).replace("-", "−")), more = [0, 1, 2].find((digits) => text(low, digits) !== text(high, digits)), ticks = more === undefined ? [[low, height / 2 + 4]] : [[high, 9], [low, height]];
    const parts = [shape("rect", { x: SIDES.left, y: top, width: Math.max(this.width - SIDES.left - SIDES.right, 0), height, class: "band" }),
      ...ticks.map(([value, down]) => shape("text", { x: SIDES.left - 6, y: top + down, "text-anchor": "end", class: "tick" }, text(value, more ?? 0)))];
    for (const { run, points, ends } of lines.sort((a, b) => on.has(a.run.key) - on.has(b.run.key))) {
      const every = Math.max(1, Math.floor(points.length / (2 * this.width))), strong = on.has(run.key);
      const place = ([round, value]) => [this.x(round), y(value)], few = (some) => some.filter(([, value], i) => i % every === 0 || i === points.length - 1).map(place), path = pathOf(few(points)), end = points[points.length - 1];
      const outline = ends.length ? pathOf([...few(ends[0]), ...few(ends[1]).reverse()].filter(([, at]) => Number.isFinite(at))) : "";
      if (outline) parts.push(shape("path", { d: `${outline}Z`, fill: run.shade, opacity: strong ? 0.2 : 0.08, class: "spread", "clip-path": `url(#${stage.id("span")})` }, shape("title", {}, `${run.label}: lowest to highest of its seeds`)));
      parts.push(shape("path", { d: path, fill: "none", stroke: run.shade, "stroke-width": run.key === stage.state.look ? 2.6 : strong ? 1.8 : 1, class: strong ? null : "pale", "stroke-dasharray": dashOf(run, 1.6), "clip-path": `url(#${stage.id("span")})` }));
      const alone = points.filter(([round, value], i) => round >= first && round <= last && Number.isFinite(y(value)) && ![-1, 1].some((by) => Number.isFinite(points[i + by]?.[1]))).map(place); // a line of one round is a dot
      parts.push(...alone.map(([cx, cy]) => shape("circle", { cx, cy, r: strong ? 3 : 2, fill: run.shade, class: strong ? "alone" : "alone pale" })));
      if (run.state === "growing" && end && end[0] <= last && Number.isFinite(y(end[1]))) parts.push(shape("circle", { cx: this.x(end[0]), cy: y(end[1]), r: 4, fill: run.shade, class: "live" }, shape("title", {}, `${run.label} is being trained`)));
    }
    const title = words + (log ? ", logarithmic" : "") + (smooth > 1 ? `, mean of ${smooth} rounds` : "") + (stage.land.mixed(curves) ? ", of different data" : ""), wide = Math.min(6.2 * title.length / (this.width - SIDES.left - SIDES.right), 1);
    const shares = ticked.flatMap(({ points }) => points.map(([round, value]) => [(round - first) / (last - first), (value - low) / (high - low || 1)]));
    const crowd = ([right, lower]) => shares.filter(([across, up]) => (right ? across > 1 - wide : across < wide) && Math.abs(up - (lower ? 0 : 1)) < 14 / height).length;
    const corner = [[0, 0], [1, 1], [1, 0], [0, 1]].reduce((best, one) => (crowd(one) < crowd(best) ? one : best));
    parts.push(shape("text", { x: corner[0] ? this.width - SIDES.right - 6 : SIDES.left + 6, y: corner[1] ? top + height - 4 : top + 11, "text-anchor": corner[0] ? "end" : "start", class: "band-name" }, title));
    return parts;
  }

  // Flags where something begins, of the runs on the stage, by round: {run, x, flag}. A flag that would lie over another one
  // is beside it; words that would lie over another flag or its words are left to its title.
  events(within, alarms) {
    const all = this.stage.shown.flatMap((run, i) => [...run.events, ...alarms[i]].filter((event) => within(event.round)).map((event) => ({ run, event, round: this.x(event.round) }))).sort((a, b) => a.event.round - b.event.round);
    all.forEach((one, i) => { one.x = Math.max(one.round, i ? all[i - 1].x + WIDE : 0); });
    for (let i = all.length - 1; i >= 0; i--) all[i].x = Math.min(all[i].x, i === all.length - 1 ? this.width - 12 : all[i + 1].x - WIDE);
    const taken = all.map(({ x }) => [x, x + 9]);
    return all.map(({ run, event, x, round }) => {
      const words = `${run.label}, round ${event.round}: ${event.words}.${meanings(event.words, this.stage.scene.terms)}`, name = event.words.split(":")[0], free = ({ span }) => span[0] > 0 && span[1] < this.width && taken.every(([from, to]) => span[1] < from || span[0] > to);
      const places = [name, name.replace(/ \[.*/, "")].flatMap((text) => [false, true].map((left) => ({ text, left, span: left ? [x - 6 - 6.5 * text.length, x - 2] : [x + 10, x + 14 + 6.5 * text.length] })));
      const { text: brief = "", left = false, span = null } = places.find(free) || {}, long = 6.5 * brief.length; // at its right or left, with its interval or without
      if (span) taken.push(span);
      const flag = shape("g", { class: "event", role: "button", "aria-label": words, ...pressed(() => this.goTo(event.round)) }, shape("title", {}, words),
        shape("rect", { x: left ? x - 4 - long : x - 3, y: 0, width: span ? long + 16 : 15, height: 14, fill: "transparent" }), shape("path", { d: `M${x} 3h9l-3 4l3 4h-9z`, fill: run.shade }), shape("text", { x: left ? x - 4 : x + 12, y: 11, class: "tick", "text-anchor": left ? "end" : "start" }, brief));
      return { run, x: round, flag, span: event.span };
    });
  }

  // Shows the round of a flag, or the nearest one that has a landscape, and says which.
  goTo(round, how) {
    const { stage } = this, to = stage.land.nearest(round, stage.rounds, stage.state.round);
    stage.player.stop();
    stage.player.goTo(to, how);
    stage.say(to === round ? "" : stage.rounds.length ? `${stage.land.lacks(round)} Round ${to}, the nearest, is shown.` : `Round ${round} has no landscape, nor has another round of these runs.`);
  }

  // The handle alone, at any place between two rounds.
  move(round) {
    if (!this.line) return;
    const [first, last] = this.rounds, out = round < first || round > last;
    fill(this.line, { x1: this.x(round), x2: this.x(round) });
    fill(this.knob, { cx: this.x(round) });
    for (const one of [this.line, this.knob]) one.style.display = out ? "none" : "";
    const { firstRound, lastRound, state } = this.stage;
    if (this.at.textContent !== `Round ${state.round}`) this.at.textContent = `Round ${state.round}`;
    fill(this.plot, { "aria-valuemin": firstRound, "aria-valuemax": lastRound, "aria-valuenow": state.round, "aria-valuetext": `round ${state.round}` });
  }

  // Zooms around the round on the stage; a factor of 0 shows all.
  zoom(factor) {
    const { stage } = this, [first, last] = this.rounds, half = ((last - first) * factor) / 2, { round } = stage.state;
    const [from, to] = [Math.max(Math.round(round - half), stage.firstRound), Math.min(Math.round(round + half), stage.lastRound)];
    stage.set({ span: factor === 0 || (from === stage.firstRound && to === stage.lastRound) || to - from < 2 ? (factor < 1 && factor ? stage.state.span : null) : [from, to] });
  }

  // Across the curves a drag selects a span; on the ruler, and by touch, it moves the round. A double click shows all.
  listen() {
    let from = null, brush = null, before = null, pinched = ""; // pinched: where the address stood before two fingers
    const fingers = new Map(); // of two, each keeps its round under it: {x, round}
    const pinch = () => {
      const [a, b] = [...fingers.values()].sort((one, other) => one.round - other.round), { left } = this.plot.getBoundingClientRect(), each = Math.max(b.x - a.x, 1) / Math.max(b.round - a.round, 1e-6), { firstRound, lastRound } = this.stage;
      const ends = [SIDES.left, this.width - SIDES.right].map((x) => Math.min(Math.max(Math.round(a.round + (x + left - a.x) / each), firstRound), lastRound));
      if (ends[1] - ends[0] >= 2) this.stage.set({ span: ends[0] === firstRound && ends[1] === lastRound ? null : ends }, { replace: this.stage.written !== pinched });
    };
    const roundAt = (event) => { const box = this.plot.getBoundingClientRect(), [first, last] = this.rounds; return first + ((event.clientX - box.left - SIDES.left) / (box.width - SIDES.left - SIDES.right)) * (last - first); };
    const to = (event) => { const { stage } = this, [first, last] = this.rounds; stage.player.goTo(stage.land.nearest(Math.min(Math.max(roundAt(event), first), last), stage.rounds, stage.state.round), { drag: event.type === "pointermove", gesture: from }); };
    this.plot.addEventListener("pointerdown", (event) => {
      const ruler = event.clientY > this.plot.getBoundingClientRect().bottom - SIDES.bottom - 8 || event.pointerType === "touch";
      this.plot.setPointerCapture(event.pointerId);
      this.stage.player.stop();
      if (event.pointerType === "touch") fingers.set(event.pointerId, { x: event.clientX, round: roundAt(event) });
      if (fingers.size > 1) { from = null; pinched = this.stage.written; return; }
      from = { x: event.clientX, round: roundAt(event), ruler };
      if (ruler) to(event);
    });
    this.plot.addEventListener("pointermove", (event) => {
      if (fingers.size > 1 && fingers.has(event.pointerId)) { fingers.get(event.pointerId).x = event.clientX; pinch(); return; }
      if (!event.buttons || !from) return;
      if (from.ruler) { to(event); return; }
      if (!brush && Math.abs(event.clientX - from.x) < 6) return;
      const ends = [from.round, roundAt(event)].sort((a, b) => a - b).map((round) => this.x(round));
      if (!brush) { brush = shape("rect", { class: "brush", y: SIDES.top, height: this.height - SIDES.top - SIDES.bottom }); this.plot.append(brush); }
      fill(brush, { x: ends[0], width: ends[1] - ends[0] });
    });
    const end = (event) => {
      fingers.delete(event.pointerId);
      if (!from) return;
      const [first, last] = this.rounds, [low, high] = [from.round, roundAt(event)].sort((a, b) => a - b), span = [Math.max(Math.round(low), first), Math.min(Math.round(high), last)];
      if (brush) { brush.remove(); if (event.type === "pointerup" && span[1] - span[0] >= 1) this.stage.set({ span }); } else if (!from.ruler && event.type === "pointerup") { if (event.detail < 2 && !(before && performance.now() - before.time < 500)) before = { round: this.stage.state.round, time: performance.now() }; to(event); }
      from = brush = null;
    };
    this.plot.addEventListener("pointerup", end);
    this.plot.addEventListener("pointercancel", end);
    this.plot.addEventListener("dblclick", () => { this.stage.set({ span: null, ...(before ? { round: before.round } : {}) }, { replace: Boolean(before && before.round !== this.stage.state.round) }); before = null; });
    this.plot.addEventListener("keydown", (event) => {
      const factor = { "+": 0.5, "-": 2, 0: 0 }[event.key], step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: 3, PageDown: -3, Home: -1e6, End: 1e6 }[event.key];
      if (step === undefined && factor === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      this.stage.player.stop();
      if (step) this.stage.player.step(step);
      else this.zoom(factor);
    });
  }
}

// Of the answers for several seeds over the rounds of the first: mean, and lowest and highest where there are several.
function overSeeds(answers) {
  if (!answers.length) return null;
  const { rounds } = answers[0], tables = answers.map((one) => { const values = floatsOf(one.values); return new Map(one.rounds.map((round, i) => [round, values[i]])); });
  const rows = rounds.map((round) => tables.map((table) => table.get(round)).filter(Number.isFinite)), of = (what) => rows.map((row) => (row.length ? what(row) : NaN));
  return { rounds, values: of(meanOf), ends: answers.length > 1 ? [of((row) => Math.min(...row)), of((row) => Math.max(...row))] : undefined };
}

// The mean of a value and as many on both sides as there are, of `wide` rounds at most.
function mean(values, i, wide) {
  if (wide < 2) return values[i];
  const half = Math.min((wide - 1) / 2, i, values.length - 1 - i);
  return meanOf(values.slice(i - half, i + half + 1).filter(Number.isFinite));
}

// A written number with its power of ten, as the figures write it: 5.2×10⁻⁷.
const powered = (text) => text.replace(/e\+?(-?)(\d+)/, (_, sign, digits) => `×10${sign && "⁻"}${digits.replace(/\d/g, (one) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[one])}`);
