// The models on a picture: arrows to their aggregate and a mark with a name for each, or the way of the global model.

const NEAR = 7, APART = 34; // px within which two marks are one, and between two rounds of a path that have labels
const KINDS = { start: "start: what the clients received", aggregate: "aggregate: mean of the clients with FedAvg's weights", end: "end: the global model after the round", mix: "your weights: the clients with the weights of the card" };
const TEXTS = { mix: "your weights" };

class Marks {
  constructor(picture) {
    this.picture = picture;
    this.stage = picture.stage;
    this.arrows = shape("g", { class: "arrows", "aria-hidden": "true" });
    this.element = shape("g", { class: "marks" });
  }

  draw() {
    const { frame, fade, scale, view, at, run } = this.picture.shown, { state } = this.stage;
    const focus = document.activeElement, active = focus && this.element.contains(focus) ? focus.dataset.mark : null;
    if (view === "path") this.path(frame);
    else if (view === "models") this.models(frame);
    else if (scale.difference) this.difference();
    else {
      const mix = run.key === state.look && !at.stale ? this.stage.mixMark : null;
      this.round([...frame.marks, ...(mix ? [mix] : [])]);
    }
    this.element.style.opacity = this.arrows.style.opacity = at.stale ? null : fade;
    if (active) [...this.element.children].find((one) => one.dataset.mark === active)?.focus();
  }

  // Models of both runs of a difference, those of each in its colour; where that is one, rings are those of the run that is subtracted.
  difference() {
    const { run, other, at, surface } = this.picture.shown, two = [[other, this.stage.land.frame(other)], [run, at]], named = []; // named: [text, colour, place], so that two equal ones are not side by side
    const boxes = two.flatMap(([, { frame }]) => frame.marks.filter(({ u, v }) => surface.inside(u, v)).map(({ u, v }) => around(this.picture.seen(u, v))));
    const both = two.map(([one, { frame }]) => { this.round(frame.marks, { run: one, frame, boxes, named, ring: one === other && one.colour === run.colour }); return [[...this.arrows.children], [...this.element.children]]; });
    [this.arrows, this.element].forEach((element, i) => element.replaceChildren(...both.flatMap((parts) => parts[i])));
    oneStop(this.element, ".mark");
  }

  // Models of a round: arrows from the start and the clients to their aggregate; `of`: the run, of a difference.
  round(marks, of = null) {
    const { surface } = this.picture.shown, seen = (u, v) => this.picture.seen(u, v);
    const to = marks.find((mark) => mark.kind === "aggregate");
    const places = marks.map((mark) => ({ mark, at: seen(mark.u, mark.v), inside: surface.inside(mark.u, mark.v) })).filter((one) => one.inside);
    const target = places.find((one) => one.mark === to);
    const lines = [];
    for (const { mark, at } of target ? places : []) {
      if (mark === to || ["end", "mix"].includes(mark.kind) || Math.hypot(at[0] - target.at[0], at[1] - target.at[1]) < 2 * NEAR) continue;
      const way = Array.from({ length: 25 }, (_, i) => seen(mark.u + (i / 24) * (to.u - mark.u), mark.v + (i / 24) * (to.v - mark.v)));
      const path = pathOf(shortened(way, target.at, 9));
      const strong = mark.kind === "client" && Number(mark.name.slice(7)) === this.stage.state.client;
      lines.push(shape("path", { d: path, class: "way halo" }), tinted(shape("path", { d: path, class: `way ${mark.kind}${strong ? " strong" : ""}`, "stroke-dasharray": of && mark.kind === "client" ? dashOf(of.run, 1.4) : null, "marker-end": `url(#${this.stage.id("head")})` }), of));
    }
    this.arrows.replaceChildren(...lines);
    const end = places.find((one) => one.mark.kind === "end");
    const tiny = 1e-6 * this.picture.shown.half; // one model, not two whose marks are near
    const same = end && target && Math.hypot(end.mark.u - to.u, end.mark.v - to.v) < tiny && Math.abs(end.mark.away - to.away) < tiny;
    const boxes = of ? of.boxes : places.map(({ at }) => around(at));
    const order = (mark) => ["client", "start", "aggregate", "end", "mix"].indexOf(mark.kind);
    const items = places.filter((one) => !(same && one === target)).sort((a, b) => order(a.mark) - order(b.mark));
    const drawn = new Map((this.picture.small ? [...items].reverse() : items).map((item) => [item, this.mark(item.mark, item.at, boxes, same && item.mark.kind === "end", of)]));
    this.element.replaceChildren(...items.map((item) => drawn.get(item)));
    oneStop(this.element, ".mark");
  }

  mark(mark, [x, y], boxes, both, of) {
    const { shown, side } = this.picture, wide = (text) => widthOf(text, this.stage.root), client = mark.kind === "client" ? Number(mark.name.slice(7)) : null, off = mark.away > 1e-6 * shown.half;
    const picked = client !== null && client === this.stage.state.client;
    const one = client === null ? null : (of ? of.frame : shown.frame).cohort.find((other) => other.id === client), held = one && heldWords(one, this.stage);
    const holds = one ? `; ${one.samples} samples${held && `, labels ${held}`}` : "";
    const loss = shown.at.rough || (mark.kind === "mix" && mark.loss === null) ? "" : `${shown.words.metric === "loss" ? "loss" : `${this.stage.splitWords()} loss`} ${written(mark.loss)}; `;
    const words = `${of ? `${this.stage.named(of.run)}, ` : ""}${client === null ? KINDS[mark.kind] : mark.name}; ${loss}${off ? `${written(mark.away, 2)} from the plane` : "on the plane"}${holds}`;
    const body = { start: () => shape("rect", { x: x - 5, y: y - 5, width: 10, height: 10, rx: 1.5 }),
      aggregate: () => shape("path", { d: `M${x} ${y - 7}L${x + 7} ${y}L${x} ${y + 7}L${x - 7} ${y}Z` }),
      mix: () => shape("path", { d: `M${x} ${y - 9}L${x + 3} ${y - 3}L${x + 9} ${y}L${x + 3} ${y + 3}L${x} ${y + 9}L${x - 3} ${y + 3}L${x - 9} ${y}L${x - 3} ${y - 3}Z` }),
      end: () => shape("circle", { cx: x, cy: y, r: of ? 7.5 : 6 }), client: () => shape("circle", { cx: x, cy: y, r: of ? 4.5 : 5.5 }) }[mark.kind]();
    const frame = shown.view === "relief" ? { x: 0, y: 0, width: side, height: side } : this.picture.box, long = both && side > 300 && freePlace(x, y, wide("end = aggregate"), boxes, frame, null);
    const brief = client === null ? (long ? "end = aggregate" : TEXTS[mark.kind] || mark.kind) : String(client), some = of || (mark.kind !== "end" && !picked) ? null : undefined, again = of && of.named.some(([one, colour, at]) => one === brief && colour === of.run.shade && Math.hypot(at[0] - x, at[1] - y) < 2 * APART);
    let text = brief, place = again ? null : long; // of a difference with the name of the run, where that has room
    for (const one of again || long ? [] : [...(of && client === null ? [`${brief}, ${this.stage.named(of.run)}`] : []), brief]) if (!place) place = freePlace(x, y, wide(text = one), boxes, frame, some);
    if (of && place) of.named.push([brief, of.run.shade, [x, y]]);
    const label = place ? shape("text", { x: place.x, y: place.y + 11 }, text) : null;
    if (label && of) Object.assign(label.style, { stroke: of.run.colour, fill: brightness(of.run.colour) > 0.18 ? "#000" : "#fff" });
    const pick = pressed(() => (client === null ? this.stage.pickPoint([mark.u, mark.v]) : this.stage.pickClient(client)));
    return shape("g", { class: `mark ${mark.kind}${off ? " off" : ""}${picked ? " picked" : ""}`, role: "button", "aria-pressed": client === null ? null : String(picked), "aria-label": words, "data-mark": of ? `${mark.name} of ${of.run.key}` : mark.name, ...pick }, shape("title", {}, words), tinted(body, of, "fill"), label);
  }

  // The model of a path or map that is nearest to a place, within 20 px.
  near(spot) {
    const [x, y] = this.picture.seen(...spot), far = (mark) => { const [px, py] = this.picture.seen(mark.u, mark.v); return Math.hypot(px - x, py - y); };
    return this.picture.shown.frame.marks.filter((mark) => ["round", "model"].includes(mark.kind) && far(mark) < 20).sort((a, b) => far(a) - far(b))[0];
  }

  // What a model of a path or map is called.
  wordsOf(mark) {
    if (mark.kind === "round") return `round ${mark.round}: test loss ${written(mark.loss)}, ${written(mark.away, 2)} from the plane`;
    const run = this.runOf(mark), name = mark.client === null ? "global model" : `client ${mark.client}`;
    return `${run ? this.stage.named(run) : mark.run}, ${name} of round ${mark.round}: loss ${written(mark.loss)}; basin ${mark.basin}${mark.chosen ? "; in the mean to take" : ""}`;
  }

  runOf(mark) { return this.stage.runs.find((run) => run.key === keyOf(this.stage, mark.run)); }

  // Selects the round of a model; of a map also its run and client, if that round has a landscape.
  pick(mark) {
    const { stage } = this, run = mark.kind === "model" && this.runOf(mark);
    if (mark.kind === "model" && !(run && stage.land.rounds(run).includes(mark.round))) { stage.player.stop(); stage.say(`${this.wordsOf(mark)}. ${stage.land.lacks(mark.round)}`); return; }
    if (run) stage.set({ client: mark.client, look: run.key, runs: stage.withRun(stage.state.runs, run.key) });
    stage.line.goTo(mark.round);
  }

  // The models of a map: basins, barriers between them, a mark for each model, and the mean to take.
  models(frame) {
    const { stage, picture } = this, { state } = stage, places = frame.marks.map((mark) => ({ mark, at: picture.seen(mark.u, mark.v) })), middleOf = (some) => [0, 1].map((axis) => meanOf(some.map(({ at }) => at[axis])));
    const basins = [...new Set(frame.marks.map((mark) => mark.basin))].sort((a, b) => a - b).map((basin) => { const some = places.filter(({ mark }) => mark.basin === basin), middle = middleOf(some); return { basin, some, middle }; });
    const around = ({ some }) => `${pathOf(hullOf(some.map(({ at }) => at)))}Z`, chosen = places.filter(({ mark }) => mark.chosen), lines = [];
    basins.forEach((a, i) => basins.slice(i + 1).forEach((b, j) => {
      const [x, y] = [0, 1].map((axis) => (a.middle[axis] + b.middle[axis]) / 2), height = frame.barriers[i][i + j + 1];
      lines.push(shape("path", { d: pathOf([a.middle, b.middle]), class: "between" }), shape("text", { x, y, "text-anchor": "middle" }, height === null ? "" : `barrier ${written(height, 2)}`));
    }));
    const names = basins.length > 1 ? basins.map(({ basin, some, middle: [x] }) => shape("text", { x, y: Math.min(...some.map(({ at }) => at[1])) - 16, "text-anchor": "middle" }, `basin ${basin}`)) : [];
    this.arrows.replaceChildren(...basins.map((one) => shape("path", { d: around(one), class: `basin of-${one.basin % 5}` })), ...lines, ...names);
    const marks = places.sort((a, b) => (a.mark.client === null) - (b.mark.client === null)).map(({ mark, at: [x, y] }) => {
      const run = this.runOf(mark), now = mark.round === state.round, picked = now && mark.client !== null && mark.client === state.client && run?.key === state.look, words = this.wordsOf(mark);
      const dot = shape("circle", { cx: x, cy: y, r: mark.client === null ? 6.5 : 4 });
      dot.style.fill = run ? run.shade : "#888";
      return shape("g", { class: `mark model${now ? " now" : ""}${picked ? " picked" : ""}`, role: "button", "aria-pressed": String(picked), "aria-label": words, "data-mark": mark.name, ...pressed(() => this.pick(mark)) }, shape("title", {}, words), dot);
    });
    const [x, y] = chosen.length > 1 ? middleOf(chosen) : [NaN], mean = Number.isFinite(x) ? [shape("path", { d: `M${x - 6} ${y - 6}l12 12M${x + 6} ${y - 6}l-12 12`, class: "taken", "aria-hidden": "true" })] : [];
    this.element.replaceChildren(...marks, ...mean);
    oneStop(this.element, ".mark");
  }

  // The global models of all rounds, joined; a click on one shows its round. One stop of the keyboard.
  path(frame) {
    const { state } = this.stage, marks = frame.marks.filter((mark) => mark.kind === "round"), places = marks.map((mark) => ({ mark, at: this.picture.seen(mark.u, mark.v) }));
    const nearest = this.stage.land.nearest(state.round, marks.map((mark) => mark.round)), now = places.find(({ mark }) => mark.round === nearest);
    const until = places.filter((one) => one.mark.round <= state.round).map((one) => one.at), line = pathOf(places.map((one) => one.at));
    this.arrows.replaceChildren(shape("path", { d: line, class: "way halo" }), shape("path", { d: line, class: "way coming" }), shape("path", { d: pathOf(until), class: "way went" }));
    const every = roundStep(Math.max(places.length / 8, 1)), boxes = [this.picture.corner, ...places.map(({ at: [x, y] }) => ({ x: x - 5, y: y - 5, width: 10, height: 10 }))];
    const order = [now, places[0], places[places.length - 1], ...places.filter(({ mark }) => mark.round % every === 0)].filter(Boolean), labels = new Map();
    const far = ([x, y]) => [...labels.values()].every(({ at }) => Math.hypot(at[0] - x, at[1] - y) > APART);
    for (const { mark, at } of order) {
      const words = mark === now.mark ? `round ${mark.round}` : String(mark.round), place = far(at) && freePlace(...at, widthOf(words, this.stage.root), boxes, this.picture.box, null);
      if (place) labels.set(mark, { ...place, at, words });
    }
    this.element.replaceChildren(...places.map(({ mark, at: [x, y] }) => {
      const here = now && mark === now.mark, place = labels.get(mark);
      const words = this.wordsOf(mark), go = pressed(() => this.pick(mark));
      return shape("g", { class: `mark round${here ? " now" : ""}`, role: "button", "aria-pressed": String(here), "aria-label": words, "data-mark": mark.name, ...go },
        shape("title", {}, words), shape("circle", { cx: x, cy: y, r: here ? 7 : 3.6 }), place && shape("text", { x: place.x, y: place.y + 11 }, place.words));
    }));
    oneStop(this.element, ".mark");
  }
}

// The place of a mark, px, which no label takes.
const around = ([x, y]) => ({ x: x - 8, y: y - 8, width: 16, height: 16 });

// The width of a label, px, in the font of the stage.
const WIDTHS = new Map(), PEN = document.createElement("canvas").getContext("2d");
function widthOf(text, root) {
  if (!WIDTHS.has(text)) { PEN.font = `600 12px ${getComputedStyle(root).fontFamily}`; WIDTHS.set(text, PEN.measureText(text).width); }
  return WIDTHS.get(text);
}

// The corners of the smallest convex shape around points.
function hullOf(points) {
  const sorted = [...points].sort(([ax, ay], [bx, by]) => ax - bx || ay - by), turns = ([ax, ay], [bx, by], [cx, cy]) => (bx - ax) * (cy - ay) - (by - ay) * (cx - ax) > 0;
  const half = (some) => some.reduce((hull, point) => { while (hull.length > 1 && !turns(hull.at(-2), hull.at(-1), point)) hull.pop(); return [...hull, point]; }, []);
  return [...half(sorted), ...half(sorted.reverse())];
}

// What makes an element of a drawing a button: a click, Enter, the space bar.
const pressed = (act) => ({ click: act, keydown: (event) => { if (["Enter", " "].includes(event.key)) { event.preventDefault(); event.stopPropagation(); act(); } } });

// A part of a drawing in the colour of a run; as it is where there is none.
function tinted(part, of, how = "stroke") {
  if (of && of.ring && how === "fill") Object.assign(part.style, { fill: "#fff", stroke: of.run.shade, strokeWidth: 3 });
  else if (of) part.style[how] = of.run.shade;
  return part;
}

// A path without its last part, so that an arrow ends beside its target.
function shortened(way, [x, y], by) {
  const outside = way.filter(([px, py]) => Math.hypot(px - x, py - y) > by);
  return outside.length > 1 ? outside : way;
}

// Where a label stands beside its mark: the first of fourteen places that is free and inside; else `otherwise`, by default the first. The place is then
// taken: it is one of the boxes.
function freePlace(x, y, width, boxes, frame, otherwise) {
  const places = [[9, -14], [-9 - width, -14], [9, 3], [-9 - width, 3], [-width / 2, -22], [-width / 2, 9], [14, -6], [-14 - width, -6], [16, -28], [16, 18], [-16 - width, -28], [-16 - width, 18], [-width / 2, 26], [-width / 2, -38]].map(([right, down]) => ({ x: x + right, y: y + down }));
  const meets = (a, b) => a.x < b.x + b.width && b.x < a.x + width && a.y < b.y + b.height && b.y < a.y + 13;
  const free = (place) => place.x > frame.x && place.x + width < frame.x + frame.width && place.y > frame.y && place.y + 13 < frame.y + frame.height && !boxes.some((box) => meets(place, box));
  const place = places.find(free) || (otherwise === undefined ? places[0] : otherwise);
  if (place) boxes.push({ ...place, width, height: 13 });
  return place;
}
