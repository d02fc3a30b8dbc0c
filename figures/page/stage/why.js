// The column at the right: why the round went as it did, the point, weights, clients, samples, and the whole run.

const TOLD = 3; // sentences that are read at once; the others are in a drawer

class Why {
  constructor(stage) {
    this.stage = stage;
    this.weights = new WeightsCard(stage);
    this.samples = new SamplesCard(stage);
    this.charts = new Analyses(stage);
    const box = () => make("div", {});
    Object.assign(this, { head: box(), point: box(), clients: box(), run: box() });
    Object.assign(this, { others: make("ol", { class: "sentences" }), based: make("p", { class: "small based" }) });
    this.more = make("details", {}, make("summary", { class: "small" }, "More reasons"), this.others);
    this.jump = make("nav", { class: "jump", "aria-label": "Parts of this column" });
    this.element = make("aside", { class: "why", "aria-label": "Why" }, this.jump, this.head, make("div", {}, this.more, this.based), this.point, this.weights.element, this.clients, this.charts.element, this.samples.element, this.run);
  }

  draw() {
    const { stage } = this, { scene, state } = stage, run = stage.looked, at = stage.land.frame(run), { frame, round } = at;
    this.element.classList.toggle("stale", Boolean(at.stale));
    checkClients(stage, run, at);
    const here = round ?? stage.land.nearest(state.round, run.rounds, null), unread = stage.link && !frame && !at.pending && `The weights in the address have no numbers: round ${here} has no models of clients that can be evaluated.`;
    const lost = state.mix && (unread || (!stage.link && !this.weights.set && "This file has no numbers of these weights of the clients: all that it shows is of the round's own."));
    const lacking = frame?.cohort ? lackingIn(state, frame.cohort.map(({ id }) => id)) : [], without = lacking.length > 0 && `Client ${idsOf(lacking)} is not in this round, which has clients ${frame.cohort.map(({ id }) => id).join(", ")}.`;
    const title = make("h2", {}, "Why", make("span", { class: "of" }, swatch(run), `${stage.named(run)}${here === null ? "" : `, round ${here}`}${at.rough ? "; rough, the exact one is coming" : ""}`));
    const sentences = ((frame && frame.why) || []).map(({ text, number, term: name }) => make("li", {}, number && make("b", { class: "number" }, minused(number)), make("p", {}, termed(minused(text), scene.terms, new Set([name])), " ", term(name, scene.terms))));
    this.based.textContent = frame ? `${frame.samples} ± is the standard error of a difference over the ${stage.splitWords()} samples${estimated(frame.parts)}; seeds may differ more.`.trim() : "";
    const told = frame ? [comparison(stage), ...sentences].filter(Boolean) : [], best = frame && this.weights.sentence(at);
    this.others.replaceChildren(...told.slice(TOLD));
    this.more.hidden = told.length <= TOLD;
    this.head.replaceChildren(title, ...[lost, without].filter(Boolean).map((line) => make("p", { class: "small lost-weights" }, line)), frame ? make("ol", { class: "sentences" }, ...told.slice(0, TOLD)) : make("p", {}, at.pending ? at.absent : "Without a landscape there are no reasons. Its picture says why there is none."), ...[best].filter(Boolean));
    this.point.replaceChildren(...[pointCard(stage)].filter(Boolean));
    this.weights.draw(at);
    this.clients.replaceChildren(...(frame ? [clientsCard(stage, run, frame)] : []));
    this.samples.draw(at);
    this.charts.draw();
    this.run.replaceChildren(...[wholeRun(stage, run, at)].filter(Boolean));
    this.list();
  }

  // The parts of the column that there are; a click leads to one.
  list() {
    const parts = [["Reasons", this.head], ["Weights", this.weights.element], ["Clients", this.clients], ["Drift and curvature", this.charts.element], ["Samples", this.samples.element], ["Whole run", this.run]].filter(([, part]) => !part.hidden && part.firstChild);
    if (!isNew(this, parts.map(([text]) => text))) return;
    this.jump.replaceChildren(...parts.map(([text, part]) => button({ click: () => this.lead(part) }, text)));
    oneStop(this.jump, "button");
  }

  lead(part) {
    const title = part.querySelector("h2, h3");
    title.setAttribute("tabindex", -1);
    title.focus({ preventScroll: true });
    part.scrollIntoView({ block: "start", behavior: this.stage.calm.matches ? "auto" : "smooth" });
  }
}

// What the diagnosis says of the run; each answer leads to what it speaks of.
function wholeRun(stage, run, at) {
  if (!stage.link) return run.verdict && make("section", { class: "diagnosis" }, make("h3", {}, "The whole run"), make("p", { class: "small" }, termed(run.verdict, stage.scene.terms)));
  if (!run.rounds.length || run.state === "damaged" || (at.pending && !at.rough)) return null;
  const member = stage.memberOf(run);
  if (!stage.read_.has(member) && !stage.land.ready(stage.state.round)) return null; // the landscapes come first
  stage.read_.add(member);
  const entry = stage.asks.want("diagnosis", { run: member }), value = entry.value;
  const words = entry.error || (entry.progress && progressWords(entry.progress)) || "Reading the record ...", { terms } = stage.scene, seen = new Set();
  const verdict = make("p", { class: "small" }, value ? termed(value.verdict, terms, seen) : words);
  const answers = value ? value.findings.map((one) => {
    const client = one.client ?? null, show = client !== null && [`Show client ${client}`, () => stage.set({ client })], draw = one.figure && [`Figure ${one.figure}`, () => stage.gallery.open(one.figure)];
    return make("li", {}, make("b", {}, one.title || one.name), one.number && make("span", { class: "small" }, " ", termed(one.number, terms, seen)), make("p", {}, termed(one.text + (one.advice ? `; ${one.advice}` : ""), terms, seen)), ...[show, draw].filter(Boolean).map(([text, act]) => button({ click: act }, text)));
  }) : [];
  return make("section", { class: "diagnosis" }, make("h3", {}, "The whole run"), verdict, make("ul", {}, ...answers));
}

// How the standard errors of many samples come about; those of few are exact.
function estimated({ samples, end }) {
  const parts = floatsOf(end).length;
  return samples > parts && parts > 1 ? `, estimated from ${parts} parts of them` : "";
}

// Which of the runs on the stage has the lowest loss after the round, if the samples say so clearly.
function comparison(stage) {
  const ends = stage.shown.map((run) => ({ run, at: stage.land.frame(run) })).filter(({ at }) => at.frame && !at.stale && !at.rough)
    .map(({ run, at }) => ({ run, round: at.round, parts: at.frame.parts, loss: at.frame.marks.find((mark) => mark.kind === "end")?.loss ?? null })).filter((one) => one.loss !== null).sort((a, b) => a.loss - b.loss);
  if (ends.length < 2) return null;
  const apart = stage.land.apart(ends.map(({ run, parts }) => ({ run, of: parts.of })));
  if (apart) return make("li", {}, make("p", {}, apart));
  const [first, ...rest] = ends, unit = stage.unit, same = ends.every((one) => one.round === first.round), after = same ? ` after round ${first.round}` : "", called = (one) => stage.named(one.run) + (same ? "" : ` (round ${one.round})`), meaning = term("End", stage.scene.terms);
  const losses = alike(ends.map((one) => one.loss)), error = (one) => errorBetween(first.parts, one.parts), named = (some) => some.map((one) => `${losses[ends.indexOf(one)]} of ${called(one)}`).join("; ");
  if (rest.every((one) => Math.abs(one.loss - first.loss) < 1e-6 * Math.abs(first.loss))) return make("li", {}, make("p", {}, `${ends.map(called).join(" and ")} are equal${after}: ${losses[0]}${unit}. `, meaning));
  const near = rest.filter((one) => !clear(first.loss - one.loss, error(one), rest.length)), far = rest.filter((one) => !near.includes(one)), next = near[0] || far[0];
  const text = near.length ? `No clear difference${after}: ${named([first, ...near])}${far.length ? `; clearly higher: ${named(far)}` : ""}. ` : `${called(first)} lies lowest${after}: ${losses[0]}, against ${named(far)}. `;
  return make("li", {}, make("b", { class: "number" }, withError(first.loss - next.loss, error(next), unit)), make("span", { class: "small" }, ` ${called(first)} minus ${called(next)}`), make("p", {}, text, meaning));
}

// The clicked point: its value in every picture of the stage, and where the number comes from.
function pointCard(stage) {
  const { point: spot } = stage.state, { land } = stage;
  if (ownPlane(stage.state.view) ? !spot : !stage.shown.some((run) => land.surface(run))) return null; // there is nothing to click
  if (!spot) return make("section", { class: "point" }, make("h3", {}, "Point"), make("p", { class: "small" }, "Click a landscape, or move with the arrow keys in it: the same place is read in every picture."));
  let own = null, any = null, rough = false, within = false, waits = false;
  const rows = stage.shown.map((run) => ({ run, at: land.frame(run), surface: land.surface(run) })).filter((one) => one.surface).map(({ run, at, surface }) => {
    const inside = surface.inside(...spot), entry = land.exact(run, at), exact = entry.value;
    if (run === stage.looked) own = exact;
    any ||= exact;
    within ||= inside;
    rough ||= inside && !exact;
    waits ||= Boolean(entry.pending);
    const number = !inside ? "beyond its plane" : exact ? land.inWords(land.exactNumber(run, at)) : `≈ ${land.inWords(surface.value(...spot))}`;
    return make("tr", {}, make("th", { scope: "row" }, swatch(run), stage.named(run)), make("td", { "data-run": run.key, title: entry.error || null }, number));
  });
  const { frame } = land.frame(stage.looked), surface = land.surface(stage.looked), parts = surface && surface.inside(...spot) && land.weights(frame, spot), sum = parts && `Here ${stage.named(stage.looked)} = ${parts.map(([id, weight]) => `${written(Number(weight.toFixed(2)), 3)} client ${id}`).join(" + ").replaceAll("+ -", "− ").replace("-", "−")}.`;
  const between = surface && !stage.link ? ` between ${surface.rows} x ${surface.columns} evaluated models: ${stage.networks.why(stage.looked)}` : "";
  const source = !within ? "not evaluated there" : waits ? "interpolated; the exact value is coming" : any ? `evaluated exactly on ${any.samples} samples${stage.link ? "" : " by this page"}${any.statistics === "recomputed" ? ", statistics of batch normalisation recomputed" : ""}${rough ? "; ≈: interpolated" : ""}` : `interpolated${between}`;
  const forget = button({ class: "plain", "aria-label": "Forget the point", click: () => stage.pickPoint(null) }, "×");
  return make("section", { class: `point${waits ? " waits" : ""}` }, make("h3", {}, `Point (${spot.map((part) => written(part, 3)).join(", ")})`, forget), make("table", {}, make("tbody", {}, ...rows)), sum && make("p", { class: "small sum" }, sum),
    own && classBars(own.class_error, stage), make("p", { class: "small" }, `${stage.quantity}, ${source}. Same distances from the mean of the three clients; other parameters in each run.`));
}

// The error of each class as bars.
function classBars(errors, stage) {
  if (!errors || !errors.length) return null;
  return make("table", { class: "class-bars" }, make("caption", { class: "small" }, `Error of each class, ${stage.named(stage.looked)}`), make("tbody", {}, ...errors.map((error, i) => {
    const bar = make("span", { class: "error-bar", "aria-hidden": "true" }, make("span", {}));
    bar.firstChild.style.width = `${100 * (error ?? 0)}%`;
    return make("tr", {}, make("th", { scope: "row" }, stage.className(i)), make("td", { class: "bar-cell" }, bar), make("td", { class: "figure" }, error === null ? "no sample" : `${(100 * error).toFixed(0)} %`));
  })));
}
