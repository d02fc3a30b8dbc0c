// The stage: one state, which stands in the address, and the parts of the page that show it.
//
// stage(root, scene, link) draws `scene` (figures.page.scene) into an element. With a link to a server (asks.js) it asks
// for what is not in the scene, and grows while runs grow; without it, it is a file. link.address is where the address
// stands, if not above the page.

class Stage {
  static number = 0; // of stages on this page: ids and names of one are not those of another

  constructor(root, scene, link) {
    Object.assign(this, { root, scene, link, runs: [], hover: null, version: 0, jobs: [], read_: new Set(), notice: "", state: blank({ link, scene }) });
    this.problems = scene.problems || [];
    this.address = (link && link.address) || ADDRESS_BAR;
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.unit = ["", "1", undefined].includes(scene.unit) ? "" : ` ${scene.unit}`;
    this.tables = Object.fromEntries(Object.entries(scene.colours).map(([name, text]) => [name, bytesOf(text)]));
    this.networks = new Networks(this);
    this.asks = new Asks(link || this.networks, () => this.answered(), () => { this.hall.progress(); this.why.charts.draw(); });
    this.land = new Landscapes(this);
    this.player = new Player(this);
    this.take(scene.runs);
    this.camera = new Camera(scene.relief);
    this.painter = new ReliefPainter();
    if (this.runs.length) this.begin();
    this.number = ++Stage.number;
    if (!link) takeQuery(false);
    this.read();
    this.build();
    this.address.follow(() => this.readAgain());
    this.dark.addEventListener("change", () => this.render());
    if (link) this.follow(link);
    this.render();
  }

  id(name) { return `stage-${name}-${this.number}`; }

  get pictures() { return this.hall.shown; }
  get shown() { return this.state.runs.map((key) => this.runs.find((run) => run.key === key)).filter(Boolean); }
  get looked() { return this.runs.find((run) => run.key === this.state.look); }
  get rounds() { return this.land.common(this.state.runs); }
  get firstRound() { return this.land.ends(this.state.runs)[0]; }
  get lastRound() { return this.land.ends(this.state.runs)[1]; }
  memberOf(run) { return this.state.seeds[run.key] || (this.link && run.names && run.names.length ? run.names[0].name : run.key); }
  seedOf(run) { const { names = [] } = run, one = names.find(({ name }) => name === this.memberOf(run)) || names[0]; return names.length > 1 ? `, seed ${one.seed}` : ""; } // of several, that of the landscapes
  named(run) { return run.label + this.seedOf(run); }

  className(number) { return String(this.scene.classes[number] ?? number); }
  metricWords(metric) { return metric.startsWith("class") ? `error of class ${this.className(Number(metric.slice(6)))}` : metric; }
  splitWords(split = this.state.split) { return { test: "test", train: "training", proxy: "proxy" }[split] || `${split}'s`; }
  quantityOf(metric, split = this.state.split) {
    const words = `${this.splitWords(split)} ${metric.startsWith("class") ? "error" : metric}`, of = metric.startsWith("class") ? ` of class ${this.className(Number(metric.slice(6)))}` : "";
    return words[0].toUpperCase() + words.slice(1) + of + (metric === "loss" ? this.unit && ` [${this.unit.trim()}]` : " [%]");
  }
  get quantity() { return this.quantityOf(this.state.metric); }

  // ---- runs ----------------------------------------------------------------------------------------------------------

  // Takes runs of a scene: new ones, and what has changed of those that are there.
  take(entries) {
    for (const entry of entries) {
      const before = this.runs.find((run) => run.key === entry.key), run = before || entry;
      if (!before) this.runs.push(run);
      run.grown ||= before?.done !== undefined && String(before.done) !== String(entry.done); // not only read further
      Object.assign(run, entry, { label: briefly(entry.label) });
      for (const name of ["events", "dash", "settings"]) run[name] ||= []; // of a run that is not read
      run.shown ||= {};
      run.curves = Object.fromEntries(Object.entries(run.series || {}).map(([name, text]) => [name, [...floatsOf(text)]]));
      run.ends = Object.fromEntries(Object.entries(run.spread || {}).map(([name, texts]) => [name, texts.map((text) => [...floatsOf(text)])]));
      const known = (run.accuracies || []).filter((value) => value !== null);
      run.accuracy = known.length ? meanOf(known) : null;
      run.shade = shadeOf(run.colour, this.dark.matches);
    }
    this.land.replaced(entries);
    this.version += 1;
  }

  // What a server says unasked.
  follow(link) {
    link.on("scene", (value) => {
      const { runs: changed, keys, problems, ...rest } = value, none = !this.rounds.length;
      Object.assign(this.scene, rest);
      this.land.gone(changed);
      this.take(changed);
      Object.assign(this, keys && { runs: keys.map((key) => this.runs.find((run) => run.key === key)).filter(Boolean) }, problems && { problems }).asks.forget(changed.map(({ key }) => this.runs.find((run) => run.key === key)));
      if (!this.runs.length) return this.render();
      const first = beginning(this).state; // as long as nothing was selected, the last round that is read is shown
      if (none) { if (this.address.read()) this.settle(); else this.begin(); } // the first rounds
      else if (!this.address.read() && String(first.runs) === String(this.state.runs) && this.shown.every((run) => run.state !== "growing")) this.state.round = first.round;
      const runs = this.state.runs.filter((key) => this.runs.some((run) => run.key === key));
      if (runs.length < this.state.runs.length) { const { notice } = this; this.set({ runs: runs.length ? runs : this.runs.slice(0, 1).map((run) => run.key) }, { replace: true }); this.say(this.notice = notice); return; }
      this.answered();
    });
    link.on("jobs", (value) => { this.jobs = value; this.rail.drawJobs(); });
    link.on("problems", (value) => { this.problems = value; this.rail.drawJobs(); });
    link.on("state", (state) => {
      if (state === "open" && this.asks.lost) this.asks.again();
      this.asks.lost = state !== "open";
    });
  }

  // ---- state ---------------------------------------------------------------------------------------------------------

  begin() { const { state, wrong, past = "" } = beginning(this); Object.assign(this, { state, notice: complaint(wrong) || past }); this.settle(); }

  read() {
    const read = readAddress(this, this.address.read(), beginning(this).state);
    if (read) { Object.assign(this.state, read.state); Object.assign(this, { notice: complaint(read.wrong, read.whole), unchecked: true, uncheckedCurves: true }); this.settle(); if (read.wrong.length && this.rounds.length) this.write(true); }
    this.camera.turnTo(this.state.turn);
  }

  // The address was changed elsewhere; one that leads to a place below the stage changes nothing.
  readAgain() {
    const hash = this.address.read();
    if (!this.runs.length || hash === this.written || (hash.length > 1 && !readAddress(this, hash, this.state))) return;
    this.player.stop();
    this.tween = null;
    this.written = hash;
    if (hash.length < 2) this.begin();
    this.read();
    if (hash.length > 1) this.write(true);
    this.render();
  }

  write(replace) {
    if (!this.runs.length) return;
    this.written = addressOfState(this.state);
    if (this.written !== this.address.read()) this.address.write(this.written, replace);
  }

  settle() { // what does not fit together: a round or span that nobody has, weights that were set for another round
    const { state, rounds } = this, before = state.round;
    state.span = spanOf(this, state.span, state.runs);
    if (!state.runs.includes(state.look)) state.look = state.runs[0] ?? "";
    state.round = this.land.nearest(before, this.land.held(state.runs), before);
    if (state.round !== before) this.notice = `No run on the stage has ${rounds.length ? `a ${this.land.nothing(before, state.runs)}` : `round ${before}`}: round ${state.round}, the nearest, is shown.`;
    if (state.view === "difference" && state.runs.length < 2) Object.assign(this, { notice: [this.notice, `The map is shown: ${TWO}.`].filter(Boolean).join(" ") }).state.view = "map";
    if (state.mix && (state.mix.run !== state.look || state.mix.round !== state.round)) state.mix = null;
  }

  set(changes, { replace = false } = {}) {
    this.notice = "";
    Object.assign(this.state, changes);
    this.settle();
    this.write(replace);
    this.render();
  }

  withRun(runs, key) { return !key || runs.includes(key) ? runs : this.ordered(runs.length < MOST ? [...runs, key] : [key, ...runs.slice(1)]); }

  ordered(keys) { return this.runs.map((run) => run.key).filter((key) => keys.includes(key)); }

  compare(key) {
    const on = this.state.runs.includes(key);
    if (on && this.state.runs.length === 1) { this.rail.draw(true); return; }
    this.set({ runs: on ? this.state.runs.filter((one) => one !== key) : this.ordered([...this.state.runs, key]) });
  }

  look(key) {
    this.set({ look: key, runs: this.withRun(this.state.runs, key) });
  }

  pickClient(id) { this.set({ client: this.state.client === id ? null : id }); }
  pickPoint(point, replace = false) { this.set({ point: point && point.map((part) => Number(written(part, 4))) }, { replace }); }

  point(spot, view = "map") {
    Object.assign(this, { hover: spot, hoverView: view });
    for (const picture of this.pictures) picture.follow();
  }

  // The relief was turned: its place stands in the address too.
  turned() { this.state.turn = [this.camera.azimuth, this.camera.elevation].map((part) => Number(written(part, 4))); this.write(true); this.redraw(); }

  // ---- page ----------------------------------------------------------------------------------------------------------

  build() {
    this.hall = new Hall(this);
    this.rail = new Rail(this);
    this.why = new Why(this);
    this.line = new TimeLine(this);
    this.tour = new Tour(this);
    this.gallery = this.link ? new Gallery(this) : null;
    this.tools = make("div", { class: "tools" });
    const head = shape("svg", { width: 0, height: 0, class: "unseen", "aria-hidden": "true" }, shape("defs", {}, shape("marker", { id: this.id("head"), viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 5, markerHeight: 5, orient: "auto" }, shape("path", { d: "M0 0L8 4L0 8z", fill: "context-stroke" }))));
    this.none = make("div", { class: "none-yet", hidden: true });
    this.spoken = make("p", { class: "unseen", role: "status" });
    this.complaint = make("p", { class: "warn complaint", role: "alert", hidden: true });
    this.root.replaceChildren(head, this.rail.element, make("div", { class: "still" }, make(this.link ? "main" : "section", { class: "centre", "aria-label": "Landscapes" }, this.tools, this.complaint, this.none, this.hall.element, this.hall.key, this.hall.about, this.tour.element, this.spoken), this.line.element), this.why.element);
    if (this.gallery) this.root.after(this.gallery.element);
    this.root.addEventListener("keydown", (event) => { if (event.key === "Escape") this.close(event.target); });
  }

  // Closes what is open: the drawer that has the focus, else any; the tour; the point.
  close(from) {
    const drawer = from.closest("details[open]:not(.picks)") || this.root.querySelector(":is(.save, .detail)[open]");
    if (drawer) { drawer.open = false; drawer.querySelector("summary").focus(); }
    else if (from.matches(".term")) from.blur();
    else if (this.state.tour) this.tour.go(0);
    else if (this.state.point) this.pickPoint(null);
  }

  // Tells a screen reader the numbers at the point.
  speak() {
    const { point, view } = this.state, read = this.pictures.filter((picture) => picture.shown.frame), waits = this.shown.some((run) => this.land.exact(run, this.land.frame(run)).pending);
    const words = point && !ownPlane(view) && !waits ? read.map(({ shown, reading }) => `${this.named(shown.run)}: ${reading.textContent}`).join("; ") : "";
    if (words !== this.spoken.textContent && !waits) this.spoken.textContent = words;
  }

  // One plain line above the pictures, until the next change.
  say(text) { this.notice = text; this.complaint.hidden = !text; if (this.complaint.textContent !== text) this.complaint.textContent = text; }

  redraw() { cancelAnimationFrame(this.drawing); this.drawing = requestAnimationFrame(() => this.hall.draw()); }

  // Answers came: the page is drawn once for all of a frame.
  answered() { this.due ||= requestAnimationFrame(() => { this.due = 0; this.render(); this.player.catchUp(); }); }

  render() {
    this.asks.turn += 1;
    for (const run of this.runs) run.shade = shadeOf(run.colour, this.dark.matches);
    const focus = document.activeElement, place = focus && this.root.contains(focus) ? nameOf(focus) : null;
    this.rail.draw();
    this.root.classList.toggle("without-runs", !this.runs.length);
    this.none.hidden = this.runs.length > 0;
    if (!this.runs.length) {
      this.none.replaceChildren(make("h2", {}, "No run yet"), ...String(this.scene.none_yet || "Runs appear here when they are there.").split("\n").map((text) => make("p", {}, text)));
      this.hall.shown = [];
      return;
    }
    document.title = `${this.shown.map((run) => run.label).join(", ")} · round ${this.state.round} · ${this.state.view} - fedscape`;
    this.tools.replaceChildren(...toolsOf(this));
    this.say(this.notice);
    this.mixMark = this.why.weights.markOf();
    this.hall.draw();
    this.why.draw();
    this.speak();
    this.line.draw();
    this.tour.draw();
    if (this.gallery) this.gallery.draw();
    this.land.ahead();
    this.asks.sweep();
    if (place && !this.root.contains(document.activeElement)) [...this.root.querySelectorAll(place.tag)].find((one) => nameOf(one).name === place.name)?.focus({ preventScroll: true });
  }
}

const stage = (root, scene, link = null) => new Stage(root, scene, link);
