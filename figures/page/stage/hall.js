// The hall: the pictures side by side with one scale and one extent, and the colours below them.

const NARROW = 1000, SMALL = 300; // px: of a window whose parts are one above the other, and sides of pictures that have little room
const WORDS = 84, LEAST = 240, BESIDE = 110; // px: title and lines above and below a picture, its least side on a phone, and title and lines beside it
const LEAST_SHARE = 0.06, STRETCH = 2; // of the longer axis of a path's map that the shorter one has at least, and how much longer than to scale the second one is drawn at most

class Hall {
  constructor(stage) {
    Object.assign(this, { stage, pictures: [], scales: {} });
    this.element = make("div", { class: "hall" });
    this.key = make("div", { class: "keys" });
    this.about = make("p", { class: "small about" });
    new ResizeObserver(() => stage.redraw()).observe(this.element);
  }

  draw() {
    const { stage } = this, { state, land, tween } = stage, share = tween ? tween.share : 1;
    const present = land.surfaces(state.round), common = land.shared(present);
    const before = tween && land.surfaces(tween.from), past = before && land.shared(before);
    const mix = (a, b) => (past && Number.isFinite(a) ? a + share * (b - a) : b);
    const halfOf = (i) => (state.axes === "own" || ownPlane(state.view) ? mix(past && past.each[i], common.each[i]) : mix(past && past.half, common.half));
    this.scales = Object.fromEntries(["value", "difference"].map((kind) => {
      const [low, high] = common[kind].map((end, i) => mix(past && past[kind][i], end));
      return [kind, { flat: !(high > low), low: kind === "difference" && high <= low ? low - 1e-6 : low, high: high > low ? high : low + 1e-6, count: stage.scene.levels, table: stage.tables[kind], difference: kind === "difference" }];
    }));
    while (this.pictures.length < present.length) this.pictures.push(new Picture(stage));
    const elements = this.pictures.slice(0, present.length).map((picture) => picture.element);
    if (elements.some((element, i) => this.element.children[i] !== element) || this.element.children.length !== elements.length) this.element.replaceChildren(...elements);
    this.shown = this.pictures.slice(0, present.length);
    const flat = Math.max(LEAST_SHARE, ...present.map(({ surface, at }, i) => (surface && !surface.empty && at.frame ? sharesOf(state.view, surface, halfOf(i))[1] : LEAST_SHARE))), { side, stretch } = this.layOut(present.length, state.view === "path" ? flat : 1), ends = present.map(({ at }) => endOf(at.frame)).filter((end) => end && Number.isFinite(end.loss)), losses = alike(ends.map((end) => end.loss));
    this.losses = new Map(ends.map((end, i) => [end, losses[i]]));
    present.forEach(({ run, other, surface, at }, i) => {
      const old = before && before[i].surface, whole = surface && !surface.empty;
      const moving = whole && old && !old.empty && old.log === surface.log && tween ? new Between(old, surface, share) : surface;
      const small = whole && !ownPlane(state.view) && common.each[i] < 0.4 * halfOf(i);
      this.shown[i].draw({ run, other, at, frame: whole ? at.frame : null, surface: moving, fine: whole ? moving.fine : null, scale: this.scales[other ? "difference" : "value"], half: halfOf(i),
        view: ownPlane(state.view) ? state.view : state.view === "relief" && stage.painter.gl ? "relief" : "map", fade: tween ? share : 1, words: this.words({ run, other, at, surface, small }) }, side, stretch);
    });
    this.legend(present);
    this.about.textContent = !present.some(({ surface }) => surface) ? "" : state.view === "models" ? aboutModels(present[0].at.frame, state.round)
      : state.view === "path" ? "Dots: the global model after each round; the pink one is that on the stage."
      : `Dots: clients, pale ones off the plane. Arrows: to the aggregate, their mean with FedAvg's weights. Square: start; ${state.view === "difference" ? `large dot: end of the round. On a difference marks, arrows and labels have the colour and dash of their run.${present.some(({ run, other }) => other && run.colour === other.colour) ? ` Rings are those of ${stage.named(stage.looked)}.` : ""}` : "black dot: end of the round."}`;
    if (!stage.link && !ownPlane(state.view) && present.length) this.about.textContent += ` ${mapsOf(stage)}`;
  }

  words({ run, other, at, surface, small }) {
    const { stage } = this, { state, unit, land } = stage, { frame, round } = at, metric = ownPlane(state.view) ? "loss" : state.metric;
    const end = endOf(frame);
    const along = frame && frame.explained ? `${(100 * frame.explained).toFixed(0)} % of the way is on this plane; click a round` : "Click a round";
    const reading = !frame ? "" : state.view === "models" ? meansOf(frame, stage) : state.view === "path" ? (at.rough && (at.absent || "Its map is being computed")) || along : other ? (surface && surface.low === 0 && surface.high === 0 ? "The two are equal here" : `Blue: ${run.label} lies lower; red: ${other.label} does`) : at.rough ? "its loss is being evaluated" : end && metric === "loss" ? `loss after the round ${this.losses.get(end) || written(end.loss)}${unit}${small ? "; much shorter updates: see Detail" : ""}` : "";
    const place = ownPlane(state.view) || round === null ? "" : at.coming !== undefined ? `round ${round}; ${at.coming} is coming` : round !== state.round ? `round ${round}, ${round < state.round && round === land.rounds(run).at(-1) ? "its last" : `the nearest to ${state.round}`}` : at.rough ? "rough, the exact one is coming" : "";
    const absent = at.absent || (frame && frame.plane === null && frame.cohort && run.note) || (surface && metric.startsWith("class") ? `None of these samples is of class ${stage.className(Number(metric.slice(6)))}.` : surface ? "The plane has no finite value here: this run diverged." : `This landscape has no ${stage.metricWords(metric)}.`);
    const label = state.view === "models" ? `Map of kept models${frame ? ` of ${roundsOf(frame)}` : ""}.` : state.view === "path" ? `Path of ${stage.named(run)} over its rounds, and the test loss around it.` : `${other ? `Difference of ${stage.metricWords(metric)}, ${stage.named(run)} minus ${stage.named(other)}` : `${stage.quantity} of ${stage.named(run)}`}, round ${round}.`;
    return { absent, act: at.act, at: place, metric: stage.metricWords(metric), reading, label };
  }

  // How far the landscapes under way are.
  progress() { for (const picture of this.shown || []) picture.showProgress(); }

  // Places the pictures in rows so that they are as large as can be, more than two with their words beside them where they
  // are larger so. flat: the height of a map, of its width. The side of a square that holds one, px, and how much longer than
  // to scale the second axis is then drawn.
  layOut(number, flat) {
    const wide = this.element.clientWidth, phone = innerWidth < NARROW, above = this.element.getBoundingClientRect().top - this.stage.root.getBoundingClientRect().top;
    const tall = phone ? Math.max(innerHeight - above - this.stage.line.element.offsetHeight - 26, LEAST) + WORDS : Math.max(this.element.clientHeight, 0);
    const high = (columns, beside) => (tall + 14) / (phone ? 1 : Math.ceil(number / columns)) - 14 - (beside ? 0 : WORDS), rim = MARGIN.left + MARGIN.right;
    const side = (columns, beside) => Math.min((wide - 14 * (columns - 1)) / columns - (beside ? BESIDE : 0), (high(columns, beside) - rim * (1 - flat)) / flat);
    const best = (beside) => Array.from({ length: number }, (_, i) => i + 1).reduce((a, b) => (side(b, beside) > side(a, beside) + 4 ? b : a), 1);
    const beside = !phone && number > 2 && side(best(true), true) > side(best(false), false) + 20, columns = phone ? (wide > 620 ? Math.min(number, 2) : 1) : best(beside);
    const drawn = Math.floor(Math.min(Math.max(side(columns, beside), 160), wide));
    this.element.style.gridTemplateColumns = `repeat(${columns}, ${beside || (phone && columns === 1) ? Math.floor((wide - 14 * (columns - 1)) / columns) : drawn}px)`;
    this.element.style.setProperty("--side", `${drawn}px`);
    this.element.classList.toggle("beside", beside);
    return { side: drawn, stretch: Math.max(Math.min((high(columns, beside) - rim) / ((drawn - rim) * flat), STRETCH, 1 / flat), 1) };
  }

  // The colours and what they stand for.
  legend(present) {
    const { stage } = this, kinds = [...new Set(present.map(({ other }) => (other ? "difference" : "value")))];
    const mixed = stage.land.mixed(present.filter(({ other, surface }) => surface && !other));
    const name = stage.state.view === "path" ? stage.quantityOf("loss", "test") : stage.quantity;
    this.legends = kinds.filter((kind) => Number.isFinite(this.scales[kind].low)).map((kind) => {
      const { low, high, table, difference, flat } = this.scales[kind], one = difference ? 0.5 : 0, log = !difference && present.some(({ other, surface }) => surface && !other && surface.log);
      const stops = Array.from({ length: 12 }, (_, i) => { const at = 3 * Math.round(255 * (flat ? one : i / 11)); return `rgb(${table[at]}, ${table[at + 1]}, ${table[at + 2]})`; });
      const ends = (flat ? [one] : [0, 0.25, 0.5, 0.75, 1]).map((share) => { const at = low + share * (high - low), value = difference ? (Math.abs(at) < 1e-9 * high ? 0 : at) : log ? 10 ** at : at; return stage.land.percent ? 100 * value : value; });
      const texts = [flat ? DIGITS : 2, 3, 4, 5, 6, 7].map((digits) => ends.map((value) => (difference ? signed(value, digits) : written(value, digits)))).find((all, i) => i === 5 || new Set(all).size === all.length);
      return { name: difference ? `difference of ${name[0].toLowerCase()}${name.slice(1)} to ${stage.named(stage.looked)}` : name + (log ? ", logarithmic" : "") + (mixed ? ", of different samples: not comparable" : ""), stops, texts };
    });
    this.key.replaceChildren(...this.legends.map(({ name: words, stops, texts }) => {
      const bar = make("span", { class: "colours", "aria-hidden": "true" });
      bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
      return make("div", { class: "key" }, make("span", { class: "key-name" }, words), bar, make("span", { class: "ticks" }, ...texts.map((text) => make("span", {}, text))));
    }));
  }
}

// Parts of the longer axis, across and up, that a map takes: that of a path is as flat as the path.
function sharesOf(view, { u, v }, half) { return view === "path" ? [u, v].map(([low, high]) => Math.min(Math.max((high - low) / (2 * half), LEAST_SHARE), 1)) : [1, 1]; }

// How good the mean to take from a map of models is, and the basins' barriers.
function meansOf({ marks, run, taken, last, split, barriers, diverged }, stage) {
  const [, basin] = /^basin (\d+) pruned$/.exec(taken.name) || [], number = (fits) => marks.filter(fits).length, left = basin && number((mark) => mark.basin === Number(basin)) - number((mark) => mark.chosen);
  const mean = basin ? `basin ${basin} without ${left} of its models` : taken.name, of = stage.runs.find(({ key }) => key === keyOf(stage, run));
  const apart = barriers.flatMap((row, i) => row.slice(i + 1).map((value, j) => `${i + 1} and ${i + j + 2} ${written(value, 2)}`));
  return [`Mean to take: ${mean}, loss ${written(taken.loss)}${stage.unit}; ${last.name} of ${of ? stage.named(of) : run}: ${written(last.loss)}${stage.unit}; both on the half of the ${stage.splitWords(split)} samples that no choice has seen`, apart.length ? `barriers: basins ${apart.join(", ")}` : "one basin", diverged && `diverged: ${diverged}`].filter(Boolean).join("; ");
}

// Which rounds of a file have a map, and of which the models are in it.
function mapsOf({ looked, land, networks }) {
  const rounds = land.rounds(looked).filter((round) => looked.shown[round].plane), exact = rounds.filter((round) => networks.has(looked, round)), every = looked.rounds.every((round) => rounds.includes(round));
  if (!rounds.length) return `This file has no landscape of ${looked.label}.`;
  return `This file has maps of ${every ? "all rounds" : inRounds(rounds)} of ${looked.label} (dots on the time line)${exact.length ? ` and models of ${inRounds(exact)}` : ""}.`;
}
// What is on a map of models.
const roundsOf = ({ marks }) => inRounds(marks.map(({ round }) => round));
function aboutModels(frame, round) {
  const bold = frame.marks.some((mark) => mark.round === round) ? `; bold: of round ${round}` : "";
  return `Models of ${roundsOf(frame)}. Small dots: clients; large ones: global models, in the colours of their runs${bold}. Tinted: basins. Cross: the mean to take.`;
}

const endOf = (frame) => frame && frame.marks.find((mark) => mark.kind === "end");
