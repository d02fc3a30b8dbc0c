// The rail at the left: runs, shown or not and looked at or not, with accuracy, curve, state and settings; jobs; what can be saved.

const FILTERED = 12; // runs from which there is a filter

class Rail {
  constructor(stage) {
    this.stage = stage;
    const { scene } = stage, saving = (text, act) => button({ click: act }, text);
    this.note = make("p", { class: "small", role: "status" });
    const saves = [saving("This picture (PNG)", () => savePicture(stage)), saving("This picture (SVG)", () => saveDrawing(stage)), saving("Numbers (CSV)", () => saveNumbers(stage)), stage.link && saving("This page as one file", () => savePage(stage, (words, cancel) => this.say(words, cancel)))];
    const save = this.save = make("details", { class: "save" }, make("summary", {}, "Save"), make("div", {}, ...saves.filter(Boolean)));
    Object.assign(this, { saves, stop: button({ hidden: true, click: () => this.cancel() }, "Cancel") });
    this.said = make("div", { class: "saved", hidden: true }, this.note, this.stop);
    this.brand = make("p", { class: "brand" }, "fedscape ", make("span", {}, "loss landscapes and drift"));
    this.title = make("h1", {}, scene.title || "fedscape");
    this.filter = make("input", { type: "search", "aria-label": "Filter runs", placeholder: "Filter runs", input: (event) => stage.set({ filter: event.target.value }, { replace: true }) });
    this.few = make("p", { class: "small few" });
    this.list = make("ul", {});
    this.work = make("div", { class: "jobs" });
    const rest = document.getElementById("summary") ? make("a", { class: "more", href: "#summary" }, "Tables and curves ↓") : stage.link ? make("a", { class: "more", href: `#${stage.id("figures")}`, click: (event) => { event.preventDefault(); stage.gallery.element.scrollIntoView(); } }, "Figures ↓") : null;
    this.element = make("nav", { class: "rail", "aria-label": "Runs" }, this.brand, this.title, make("div", { class: "row" }, button({ click: () => stage.tour.go(1) }, "Tour"), save, rest), this.said, this.few, this.filter, this.list, this.work);
    new ResizeObserver(() => this.element.style.setProperty("--long", `${this.element.offsetHeight}px`)).observe(this.element);
  }

  // How far a file is, and what ends it; it is said until the next one.
  say(words, cancel) {
    if (cancel && this.stop.hidden) { this.save.open = false; this.stop.hidden = this.said.hidden = false; this.stop.focus(); }
    this.note.textContent = words;
    this.cancel = cancel;
    this.saves[3].disabled = Boolean(cancel);
    this.stop.hidden = !cancel;
  }

  draw(always = false) {
    const { stage } = this, { state, runs } = stage;
    this.filter.hidden = runs.length < FILTERED;
    if (document.activeElement !== this.filter) this.filter.value = state.filter;
    if (!isNew(this, [stage.version, state.runs, state.look, state.filter, state.seeds, stage.dark.matches]) && !always) return;
    const open = new Set([...this.list.querySelectorAll("details[open]")].map((one) => one.closest("li").dataset.run));
    const wanted = state.filter.toLowerCase().split(/\s+/), fits = (run) => wanted.every((word) => `${run.label} ${run.key} ${run.state || ""} ${(run.settings || []).flat().join(" ")}`.toLowerCase().includes(word));
    const listed = runs.length < FILTERED ? [...runs] : runs.filter((run) => fits(run) || state.runs.includes(run.key));
    const first = new Set(stage.scene.suggested || []);
    listed.sort((a, b) => first.has(b.key) - first.has(a.key));
    const accuracies = runs.flatMap((run) => run.curves.accuracy || []).filter(Number.isFinite), range = rangeOf(accuracies);
    this.few.textContent = runs.length ? `Accuracy: ${stage.scene.last}. Tick up to ${MOST} runs; click a name to look at it.${listed.length < runs.length ? ` ${listed.length} of ${runs.length} runs fit the filter.` : ""}` : "";
    this.list.replaceChildren(...listed.map((run) => this.card(run, range)));
    for (const one of this.list.querySelectorAll("details")) one.open = open.has(one.closest("li").dataset.run);
    this.drawJobs();
  }

  card(run, ends) {
    const { stage } = this, { state } = stage, on = state.runs.includes(run.key), look = run.key === state.look, full = !on && state.runs.length >= MOST, many = stage.seedOf(run) !== "";
    const seeds = run.seeds.length > 1 ? `mean of seeds ${run.seeds.join(", ")}` : run.seeds[0] === "" ? "seed not known" : `seed ${run.seeds[0]}`;
    const known = run.accuracies.filter((value) => value !== null), percent = (value) => (100 * value).toFixed(1), range = known.length > 1 ? ` (${percent(Math.min(...known))} to ${percent(Math.max(...known))})` : "";
    const accuracy = run.accuracy === null ? "accuracy not known" : `${percent(run.accuracy)} %`;
    const box = make("input", { type: "checkbox", checked: on, disabled: full, "aria-label": `Show ${run.label} on the stage`, title: full ? `${MOST} at most` : "On the stage", change: () => stage.compare(run.key) });
    const name = button({ class: "look", "aria-pressed": String(look), title: fullName(run), click: () => stage.look(run.key) }, swatch(run), make("span", { class: "name" }, run.label));
    const drawer = [["settings that differ", run.settings], ["all settings", run.text]].filter(([, rows]) => rows && rows.length).slice(0, 2).map(([title, rows]) => make("details", {}, make("summary", {}, title), make("dl", { tabindex: 0, "aria-label": `${title} of ${run.label}` }, ...rows.flatMap(([setting, value]) => [make("dt", {}, setting), make("dd", {}, String(value))]))));
    const seed = many && !stage.link ? make("p", { class: "small" }, `Landscapes${stage.seedOf(run).replace(",", " of")}`) : many && make("label", { class: "small" }, "Landscapes of seed ", picker(`Seed of ${run.label}`, run.names.map((one) => [one.name, one.seed]), stage.memberOf(run), (name) => stage.set({ seeds: { ...state.seeds, [run.key]: name } })));
    const rounds = run.planned && run.rounds.length < run.planned ? `${run.rounds.length} of ${run.planned} rounds` : `${run.rounds.length} round${run.rounds.length === 1 ? "" : "s"}`;
    const badge = run.state && run.state !== "complete" ? make("span", { class: `state ${run.state}` }, isGone(run) ? "gone" : run.state) : null;
    const brief = make("b", { class: "accuracy brief", "aria-hidden": "true" }, run.accuracy === null ? "" : accuracy); // of a run that is not on the stage: it has one line
    return make("li", { class: `card${on ? " on" : ""}${look ? " looked" : ""}`, "data-run": run.key }, make("div", { class: "card-head" }, box, name, brief, badge), sparkline(run, ends),
      make("p", { class: "small" }, make("b", { class: "accuracy" }, accuracy), `${range} · ${seeds} · ${rounds}`), run.note && make("p", { class: "small warn", tabindex: run.note.length > 200 ? 0 : null }, run.note), seed, ...drawer);
  }

  // Work of the server with the time that is left, and runs that cannot be read.
  drawJobs() {
    const { stage } = this;
    const jobs = stage.jobs.map((job) => make("li", {}, make("span", {}, `${job.title}: ${progressWords(job) || "under way"}`), button({ "aria-label": `Cancel ${job.title}`, click: () => stage.link.ask("cancel", { job: job.job }).catch(() => null) }, "Cancel")));
    const problems = stage.problems.filter((line) => !stage.runs.some((run) => (run.note || "").includes(line))).map((line) => make("p", { class: "small warn" }, line));
    this.work.replaceChildren(...(jobs.length ? [make("h2", {}, "At work"), make("ul", {}, ...jobs)] : []), ...problems);
  }
}

function sparkline(run, [low, high]) {
  const values = run.curves.accuracy;
  if (!values || !values.length || !Number.isFinite(low)) return null;
  const [width, height] = [200, 26], y = (value) => height - 2 - ((value - low) / (high - low || 1)) * (height - 4), every = Math.max(1, Math.floor(values.length / width));
  const points = values.map((value, i) => [(i / Math.max(values.length - 1, 1)) * width, y(value)]).filter((_, i) => i % every === 0 || i === values.length - 1);
  return shape("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    shape("path", { d: pathOf(points).replace(/^M[^ML]*$/, "$&h0"), fill: "none", stroke: run.shade, "stroke-linecap": "round", "stroke-width": points.length === 1 ? 4 : 1.6, "stroke-dasharray": dashOf(run, 1.6), "vector-effect": "non-scaling-stroke" }));
}
