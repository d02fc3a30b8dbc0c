// The stage: one state, which stands in the address, and the parts of the page that show it.
//
// stage(root, scene, ask) draws `scene` (figures.page.scene) into an element. `ask`, where there is a server, takes
// {run, round, point} and returns a promise of {value}, an exact number; without it every number is in the scene.

const MOST = 4; // landscapes side by side
const TWEEN = 450, PAUSE = 250; // ms from one round to the next, and that a round is shown while rounds are played
const VIEWS = { map: "Map", relief: "Relief", difference: "Difference" };

class Stage {
  constructor(root, scene, ask) {
    Object.assign(this, { root, scene, ask, hover: null, cache: new Map(), answers: new Map(), pictures: [] });
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.unit = ["", "1"].includes(scene.unit) ? "" : ` ${scene.unit}`;
    this.runs = scene.runs.map((run) => ({ ...run, curves: Object.fromEntries(Object.entries(run.series).map(([name, text]) => [name, [...floatsOf(text)]])) }));
    this.tables = Object.fromEntries(Object.entries(scene.colours).map(([name, text]) => [name, bytesOf(text)]));
    this.firstRound = Math.min(...this.runs.map((run) => run.rounds[0]));
    this.lastRound = Math.max(...this.runs.map((run) => run.rounds[run.rounds.length - 1]));
    this.camera = new Camera(scene.relief);
    this.painter = new ReliefPainter();
    this.state = this.beginning();
    this.read();
    this.build();
    addEventListener("popstate", () => this.readAgain());
    addEventListener("hashchange", () => this.readAgain());
    this.dark.addEventListener("change", () => this.render());
    this.render();
  }

  // ---- state -------------------------------------------------------------------------------------------------------

  // The first run and the one of highest accuracy, in the last round that has a landscape.
  beginning() {
    const able = this.runs.filter((run) => framesOf(run).length), first = able[0] || this.runs[0];
    const best = [...able].sort((a, b) => (b.accuracy ?? -1) - (a.accuracy ?? -1)).find((run) => run !== first);
    const rounds = framesOf(first);
    return { round: rounds.length ? rounds[rounds.length - 1] : this.lastRound, runs: [first, best].filter(Boolean).map((run) => run.key), look: first.key, view: "map", metric: "loss", axes: "same", point: null, client: null };
  }

  get shown() { return this.state.runs.map((key) => this.runs.find((run) => run.key === key)); }
  get looked() { return this.runs.find((run) => run.key === this.state.look); }
  get rounds() { return [...new Set(this.shown.flatMap(framesOf))].sort((a, b) => a - b); }
  get quantity() { return this.state.metric === "loss" ? `Test loss${this.unit && ` [${this.unit.trim()}]`}` : "Test error (fraction)"; }
  nearest(round, rounds = this.rounds) { return rounds.length ? rounds.reduce((a, b) => (Math.abs(b - round) < Math.abs(a - round) ? b : a)) : this.state.round; }

  // The address as a state; what it does not say, or says wrongly, stays as it is.
  read() {
    if (!location.hash.includes("=")) return false;
    const said = Object.fromEntries(location.hash.slice(1).split("&").map((pair) => pair.split("=")));
    const decoded = (text) => { try { return decodeURIComponent(text); } catch { return ""; } };
    const runs = (said.runs || "").split(",").map(decoded).filter((key, i, all) => all.indexOf(key) === i && this.runs.some((run) => run.key === key)).slice(0, MOST);
    if (runs.length) this.state.runs = runs;
    const look = decoded(said.look || "");
    this.state.look = this.state.runs.includes(look) ? look : this.state.runs.includes(this.state.look) ? this.state.look : this.state.runs[0];
    if (said.round && Number.isFinite(Number(said.round))) this.state.round = this.nearest(Number(said.round));
    if (said.view in VIEWS) this.state.view = said.view;
    if (["loss", "error"].includes(said.metric)) this.state.metric = said.metric;
    this.state.axes = said.axes === "own" ? "own" : "same";
    const at = (said.at || "").split(",").map(Number);
    this.state.point = said.at && at.length === 2 && at.every(Number.isFinite) ? at : null;
    this.state.client = /^\d+$/.test(said.client || "") ? Number(said.client) : null;
    return true;
  }

  readAgain() { this.stop(); if (this.read()) this.render(); }

  write(replace) {
    const { round, runs, look, view, metric, axes, point, client } = this.state;
    const parts = [`round=${round}`, `runs=${runs.map(encodeURIComponent).join(",")}`, `look=${encodeURIComponent(look)}`, `view=${view}`];
    if (metric !== "loss") parts.push(`metric=${metric}`);
    if (axes !== "same") parts.push(`axes=${axes}`);
    if (point) parts.push(`at=${point.map((part) => written(part, 4)).join(",")}`);
    if (client !== null) parts.push(`client=${client}`);
    const hash = `#${parts.join("&")}`;
    if (hash !== location.hash) history[replace ? "replaceState" : "pushState"](null, "", hash);
    document.title = `${this.shown.map((run) => run.label).join(", ")} · round ${round} · ${view} - fedscape`;
  }

  set(changes, { replace = false } = {}) {
    Object.assign(this.state, changes);
    if (this.rounds.length && !this.rounds.includes(this.state.round)) this.state.round = this.nearest(this.state.round);
    this.write(replace);
    this.render();
  }

  compare(key) {
    const on = this.state.runs.includes(key);
    if (on && this.state.runs.length === 1) return this.render();
    const runs = on ? this.state.runs.filter((one) => one !== key) : this.runs.map((run) => run.key).filter((one) => one === key || this.state.runs.includes(one));
    this.set({ runs, look: runs.includes(this.state.look) ? this.state.look : runs[0] });
  }

  look(key) {
    const runs = this.state.runs.includes(key) ? this.state.runs : this.state.runs.length < MOST ? this.runs.map((run) => run.key).filter((one) => one === key || this.state.runs.includes(one)) : [key, ...this.state.runs.slice(1)];
    this.set({ look: key, runs });
  }

  pickClient(id) { this.set({ client: this.state.client === id ? null : id }); }
  pickPoint(point, replace = false) { this.set({ point }, { replace }); }

  point(spot) {
    this.hover = spot;
    for (const picture of this.pictures) picture.follow();
  }

  // ---- rounds ------------------------------------------------------------------------------------------------------

  step(by) {
    const rounds = this.rounds, at = rounds.indexOf(this.state.round);
    if (rounds.length) this.goTo(rounds[Math.min(Math.max(at + by, 0), rounds.length - 1)]);
  }

  // Shows a round; the landscapes change gradually, unless the reader has asked for less motion.
  goTo(round, { drag = false, then = null } = {}) {
    if (round === this.state.round) return;
    const from = this.state.round;
    cancelAnimationFrame(this.moving);
    if (this.calm.matches || drag) { this.tween = null; this.set({ round }, { replace: drag }); if (then) then(); return; }
    this.tween = { from, share: 0 };
    this.set({ round }, { replace: this.playing });
    const begun = performance.now();
    const frame = (now) => {
      const share = Math.min((now - begun) / TWEEN, 1);
      this.tween = share < 1 ? { from, share: share * share * (3 - 2 * share) } : null;
      this.drawPictures();
      this.line.move(from + (round - from) * (this.tween ? this.tween.share : 1));
      if (share < 1) this.moving = requestAnimationFrame(frame);
      else if (then) then();
    };
    this.moving = requestAnimationFrame(frame);
  }

  togglePlay() {
    if (this.playing) return this.stop();
    const rounds = this.rounds;
    if (rounds.length < 2) return;
    this.playing = true;
    this.showPlaying();
    const next = () => {
      if (!this.playing) return;
      const at = rounds.indexOf(this.state.round);
      if (at === rounds.length - 1) return this.stop();
      this.goTo(rounds[at + 1], { then: () => { this.waiting = setTimeout(next, PAUSE); } });
    };
    if (rounds.indexOf(this.state.round) === rounds.length - 1) this.set({ round: rounds[0] });
    this.waiting = setTimeout(next, PAUSE);
  }

  stop() { this.playing = false; clearTimeout(this.waiting); this.showPlaying(); }
  showPlaying() {
    this.line.play.textContent = this.playing ? "❚❚ Pause" : "▶ Play";
    this.line.play.setAttribute("aria-pressed", String(Boolean(this.playing)));
  }

  // ---- what is on the stage ------------------------------------------------------------------------------------------

  // The values of the round of a run, of the nearest one where that has none; or one line that says why there are none.
  frameOf(run, wanted = this.state.round) {
    const rounds = framesOf(run);
    if (!rounds.length) return { frame: null, round: null, absent: run.note || Object.values(run.shown)[0] || "This run has no landscape." };
    const round = this.nearest(wanted, rounds);
    return { frame: run.shown[round], round };
  }

  surfaceOf(run, wanted) {
    const { frame, round } = this.frameOf(run, wanted), { metric } = this.state;
    if (!frame || !frame.plane.metrics[metric]) return null;
    return this.remember(`${run.key} ${round} ${metric}`, () => new Surface(frame.plane, metric));
  }

  remember(key, compute) {
    if (!this.cache.has(key)) this.cache.set(key, compute());
    return this.cache.get(key);
  }

  // The surfaces of a round on the stage: [{run, other, surface}], where `other` is subtracted.
  surfaces(round) {
    const { view, look, metric } = this.state, base = this.looked;
    return this.shown.map((run) => {
      const surface = this.surfaceOf(run, round), against = this.surfaceOf(base, round);
      if (view !== "difference" || run.key === look || !surface || !against) return { run, other: null, surface };
      const name = `${run.key} - ${look} ${this.frameOf(run, round).round} ${this.frameOf(base, round).round} ${metric}`;
      return { run, other: base, surface: this.remember(name, () => new Difference(surface, against)) };
    });
  }

  // One range of colours and one extent for all pictures of a round.
  common(surfaces, round) {
    const range = (some) => [Math.min(...some.map((one) => one.low)), Math.max(...some.map((one) => one.high))];
    const able = surfaces.filter(({ surface }) => surface && !surface.empty);
    const values = able.filter(({ other }) => !other).map(({ surface }) => surface), differences = able.filter(({ other }) => other).map(({ surface }) => surface);
    const extents = values.map(({ u, v }) => Math.max(...[...u, ...v].map(Math.abs))), marks = able.flatMap(({ run }) => this.frameOf(run, round).frame.marks.flatMap(({ u, v }) => [u, v].map(Math.abs)));
    const half = Math.min(Math.max(...extents), Math.max(Math.min(...extents), 1.15 * Math.max(...marks))); // holds all models, and no more of the wider planes
    return { half: Number.isFinite(half) ? half : 1, each: surfaces.map(({ surface }) => (surface && !surface.empty ? Math.max(...[...surface.u, ...surface.v].map(Math.abs)) : 1)), value: range(values), difference: range(differences) };
  }

  drawPictures() {
    const present = this.surfaces(this.state.round), common = this.common(present, this.state.round), { view } = this.state, share = this.tween ? this.tween.share : 1;
    const before = this.tween && this.surfaces(this.tween.from), past = before && this.common(before, this.tween.from);
    const mix = (a, b) => (past && Number.isFinite(a) ? a + share * (b - a) : b);
    const halfOf = (i) => (this.state.axes === "own" ? mix(past && past.each[i], common.each[i]) : mix(past && past.half, common.half));
    this.scales = Object.fromEntries(["value", "difference"].map((kind) => {
      const [low, high] = common[kind].map((end, i) => mix(past && past[kind][i], end));
      return [kind, { low, high: high > low ? high : low + 1e-6, count: this.scene.levels, table: this.tables[kind], difference: kind === "difference" }];
    }));
    while (this.pictures.length < present.length) this.pictures.push(new Picture(this));
    this.pictures.length = present.length;
    const elements = this.pictures.map((picture) => picture.element);
    if (elements.some((element, i) => this.hall.children[i] !== element) || this.hall.children.length !== elements.length) this.hall.replaceChildren(...elements);
    const side = this.layOut(present.length);
    present.forEach(({ run, other, surface }, i) => {
      const { frame, round, absent } = this.frameOf(run), old = before && before[i].surface;
      const whole = surface && !surface.empty;
      const moving = whole && old && !old.empty && old.log === surface.log && this.tween ? new Between(old, surface, share) : surface;
      const deep = view === "relief" && this.painter.gl;
      this.pictures[i].draw({ run, other, frame: whole ? frame : null, surface: moving, fine: whole ? moving.fine : null, scale: this.scales[other ? "difference" : "value"], half: halfOf(i), view: deep ? "relief" : "map", fade: this.tween ? share : 1,
        words: this.words(run, other, frame, round, whole && common.each[i] < 0.4 * halfOf(i), absent || "The plane has no finite value here: this run diverged.") }, side);
    });
    this.legend();
  }

  words(run, other, frame, round, small, absent) {
    const { metric } = this.state, end = frame && frame.marks.find((mark) => mark.kind === "end");
    const reading = !frame ? "" : other ? "Below zero: lies lower than the other" : end ? `loss after the round ${written(end.loss)}${this.unit}${small ? "; much shorter updates: see Detail" : ""}` : "";
    const at = round === null || round === this.state.round ? "" : `round ${round}, the nearest`;
    return { absent, at, metric, reading, quantity: other ? "difference" : metric, label: `${other ? `Difference of ${metric}, ${run.label} minus ${other.label}` : `${this.quantity} of ${run.label}`}, round ${round}.` };
  }

  // Places the pictures in rows so that they are as large as can be; the side of one, px.
  layOut(number) {
    const wide = this.hall.clientWidth, tall = Math.max(this.hall.clientHeight, 0), phone = innerWidth < 1000;
    const side = (columns) => Math.min((wide - 14 * (columns - 1)) / columns, phone ? Infinity : (tall - 12) / Math.ceil(number / columns) - 62);
    const columns = phone ? (wide > 620 ? Math.min(number, 2) : 1) : Array.from({ length: number }, (_, i) => i + 1).reduce((a, b) => (side(b) > side(a) + 4 ? b : a));
    this.hall.style.gridTemplateColumns = `repeat(${columns}, max-content)`;
    return Math.floor(Math.max(side(columns), 180));
  }

  // The colours and what they stand for.
  legend() {
    const kinds = this.state.view === "difference" && this.shown.length > 1 ? ["value", "difference"] : ["value"];
    this.key.replaceChildren(...kinds.filter((kind) => Number.isFinite(this.scales[kind].low)).map((kind) => {
      const { low, high, table, difference } = this.scales[kind], log = !difference && this.surfaces(this.state.round).some(({ other, surface }) => surface && !other && surface.log);
      const stops = Array.from({ length: 12 }, (_, i) => { const at = 3 * Math.round((255 * i) / 11); return `rgb(${table[at]}, ${table[at + 1]}, ${table[at + 2]})`; });
      const bar = make("span", { class: "colours", "aria-hidden": "true" });
      bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
      const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => { const at = low + share * (high - low); return make("span", {}, difference ? signed(Math.abs(at) < 1e-9 * high ? 0 : at, 2) : written(log ? 10 ** at : at, 2)); });
      return make("div", { class: "key" }, make("span", { class: "key-name" }, difference ? `difference of ${this.quantity.toLowerCase()} to ${this.looked.label}` : this.quantity + (log ? ", logarithmic" : "")), bar, make("span", { class: "ticks" }, ...ticks));
    }));
  }

  // An exact value from a server, where there is one.
  exact(run, point) {
    if (!this.ask) return null;
    const key = JSON.stringify([run.key, this.frameOf(run).round, point]), place = make("span", { class: "exact" }, this.answers.has(key) ? `; evaluated: ${written(this.answers.get(key), 5)}` : "");
    if (!this.answers.has(key)) this.ask({ run: run.key, round: this.frameOf(run).round, point }).then(({ value }) => { this.answers.set(key, value); this.render(); });
    return place;
  }

  // ---- page --------------------------------------------------------------------------------------------------------

  build() {
    this.rail = make("nav", { class: "rail", "aria-label": "Runs" });
    this.hall = make("div", { class: "hall" });
    this.tools = make("div", { class: "tools" });
    this.key = make("div", { class: "keys" });
    this.why = make("aside", { class: "why", "aria-label": "Why" });
    this.line = new TimeLine(this);
    const head = shape("svg", { width: 0, height: 0, class: "unseen", "aria-hidden": "true" }, shape("defs", {}, shape("marker", { id: "stage-head", viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 5, markerHeight: 5, orient: "auto" }, shape("path", { d: "M0 0L8 4L0 8z", fill: "#101010" }))));
    this.root.replaceChildren(head, this.rail, make("section", { class: "centre", "aria-label": "Landscapes" }, this.tools, this.hall, this.key), this.why, this.line.element);
    new ResizeObserver(() => this.redraw()).observe(this.hall);
  }

  redraw() { cancelAnimationFrame(this.drawing); this.drawing = requestAnimationFrame(() => this.drawPictures()); }

  toolbar() {
    const { view, metric } = this.state, errors = this.shown.some((run) => framesOf(run).some((round) => run.shown[round].plane.metrics.error));
    const one = this.shown.length < 2 ? "tick a second run to compare" : "", noGl = this.painter.gl ? "" : "this browser has no WebGL 2";
    const views = segments("stage-view", "Picture", Object.entries(VIEWS).map(([name, text]) => [name, text, name === "difference" ? one : name === "relief" ? noGl : ""]), view, (name) => this.set({ view: name }));
    const select = make("select", { "aria-label": "Number on the map", disabled: !errors, change: (event) => this.set({ metric: event.target.value }) }, ...["loss", "error"].map((name) => make("option", { value: name, selected: name === metric }, `test ${name}`)));
    const { frame } = this.frameOf(this.looked), through = frame ? `Planes go through clients ${frame.through.join(", ")} of each run: u from the first to the second, v across, towards the third; 0 is their mean.` : "";
    const words = [through, "The same place in two pictures is equally far from that mean; it is not the same model.", "Hollow marks lie off the plane and are projected onto it.", frame ? frame.samples : ""];
    const detail = make("details", { class: "detail" }, make("summary", {}, "Detail"), make("div", {}, ...words.filter(Boolean).map((text) => make("p", {}, text)),
      make("label", {}, make("input", { type: "checkbox", checked: this.state.axes === "own", change: (event) => this.set({ axes: event.target.checked ? "own" : "same" }) }), " Axes of its own for each picture"), make("br"),
      make("button", { type: "button", click: () => { this.camera.reset(); this.redraw(); } }, "Turn the relief back"), " ",
      make("button", { type: "button", click: () => this.save() }, "Numbers (CSV)")));
    detail.open = Boolean(this.tools.querySelector("details[open]"));
    return [views, select, detail];
  }

  // The evaluated numbers of the landscapes on the stage, as a file.
  save() {
    const rows = this.shown.map((run) => ({ run, round: this.frameOf(run).round, surface: this.surfaceOf(run) })).filter(({ surface }) => surface).flatMap(({ run, round, surface }) => surface.points()
      .map(([u, v, value]) => [JSON.stringify(run.label), round, u, v, value].join(",")));
    const file = make("a", { href: URL.createObjectURL(new Blob([`run,round,u,v,${this.state.metric}\n${rows.join("\n")}\n`], { type: "text/csv" })), download: `landscapes-round-${this.state.round}.csv` });
    file.click();
    URL.revokeObjectURL(file.href);
  }

  render() {
    for (const run of this.runs) run.shade = shadeOf(run.colour, this.dark.matches);
    const focus = document.activeElement, place = focus && this.root.contains(focus) ? addressOf(focus) : null;
    const open = new Set([...this.rail.querySelectorAll("details[open]")].map((one) => one.closest("li").querySelector(".name").textContent));
    this.rail.replaceChildren(...railOf(this).flat());
    for (const one of this.rail.querySelectorAll("details")) one.open = open.has(one.closest("li").querySelector(".name").textContent);
    this.tools.replaceChildren(...this.toolbar());
    this.why.replaceChildren(...whyOf(this).filter(Boolean));
    this.drawPictures();
    this.line.draw();
    if (place && !this.root.contains(document.activeElement)) [...this.root.querySelectorAll(place.tag)].find((one) => addressOf(one).name === place.name)?.focus({ preventScroll: true });
  }
}

// Between two surfaces of one run: what is drawn while the round changes.
class Between extends Plane {
  constructor(from, to, share) {
    super();
    Object.assign(this, { from, to, share, log: to.log });
    for (const axis of ["u", "v"]) this[axis] = to[axis].map((end, i) => from[axis][i] + share * (end - from[axis][i]));
    this.fine = from.fine.map((value, i) => value + share * (to.fine[i] - value));
  }

  height(u, v) {
    const moved = (surface) => ["u", "v"].map((axis, i) => surface[axis][0] + (([u, v][i] - this[axis][0]) / (this[axis][1] - this[axis][0])) * (surface[axis][1] - surface[axis][0]));
    return (1 - this.share) * this.from.height(...moved(this.from)) + this.share * this.to.height(...moved(this.to));
  }
}

// Rounds of a run that have a landscape.
function framesOf(run) { return Object.keys(run.shown).filter((round) => typeof run.shown[round] !== "string").map(Number).sort((a, b) => a - b); }

// What a control is called, to find it again after its part of the page was drawn anew.
function addressOf(element) { return { tag: element.tagName.toLowerCase(), name: element.getAttribute("aria-label") || `${element.name || ""} ${element.value || ""} ${element.textContent}` }; }

// A method's colour, paler on a dark page until it stands out from it (3 : 1).
function shadeOf(colour, dark) {
  if (!dark || !/^#[0-9a-f]{6}$/i.test(colour)) return colour;
  let parts = channelsOf(colour);
  for (let step = 0; step < 20 && (brightness(parts) + 0.05) / 0.0587 < 3; step++) parts = parts.map((part) => part + 0.1 * (255 - part));
  return `rgb(${parts.map(Math.round).join(",")})`;
}

const stage = (root, scene, ask = null) => new Stage(root, scene, ask);
