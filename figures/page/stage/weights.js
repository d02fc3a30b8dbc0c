// The card of weights: the aggregate of the round at any weights of its clients. They belong to the run and round they were set for.
// A file evaluates weights of the models that it carries, or interpolates those of the three clients of the plane (carried.js), and has what weights gave
// that were set when it was saved.

const UNIT = [0, 1], SUMS = [0.5, 1.5]; // of sliders, which reach further where weights of an address do

class WeightsCard {
  constructor(stage) {
    this.stage = stage;
    this.presets = make("div", { class: "row presets" });
    this.sliders = make("div", { class: "sliders" });
    this.numbers = make("p", { class: "what-if", role: "status" });
    this.words = make("p", { class: "small" });
    this.end = make("p", { class: "small end-words" });
    this.element = make("section", { class: "weights", hidden: true }, make("h3", {}, "Weights of the clients"), this.presets, this.sliders, this.numbers, this.end, this.words);
    Object.assign(this, { rows: new Map(), found: new Map() }); // found: words on the best weights, by question
  }

  // A sentence on the best weights, with the button that finds or shows them.
  sentence({ frame, stale }) {
    const { stage } = this, { able } = this;
    if (!frame || stale || frame.cohort.length < 2 || (able !== "live" && !frame.weights?.best)) return null;
    const round = stage.land.frame(stage.looked).round, words = able === "live" ? this.found.get(JSON.stringify(this.about({ round }))) : frame.weights.best.words;
    const act = button({ class: "best", click: () => this.preset("best") }, words ? "Show these weights" : "Find the best weights");
    return make("p", { class: "best-weights" }, words ? `${minused(words)} ` : "Would other weights of the clients have a lower loss? ", able === "saved" || !able ? null : act);
  }

  // Of a file, what it has of its weights: {of, value, own, words}; null for others.
  get saved() { const { link, scene, state } = this.stage; return !link && state.mix && scene.what_if && JSON.stringify(ofMix(state.mix)) === JSON.stringify(scene.what_if.of) ? scene.what_if : null; }

  // What this page can do: "live"; "whole", evaluate all weights itself; "three", those of the clients of the plane; "saved", show what was saved.
  get able() { const { link, looked, land } = this.stage, { frame } = land.frame(looked); return link ? "live" : carriesAll(frame) ? "whole" : this.saved ? "saved" : frame && frame.plane && frame.weights ? "three" : ""; }
  get exact() { const { stage } = this; return stage.networks.has(stage.looked, this.round); }

  // The weights that were set, where this page has a number of them.
  get set() { const { link, state: { mix }, land, looked } = this.stage; return mix && (link || this.saved || canWeigh(land.frame(looked).frame, mix)) ? mix : null; }

  // What the round took: {weights, gamma}, and the answer with its loss.
  get base() {
    const { able, stage } = this, { frame } = stage.land.frame(stage.looked);
    if (able === "three") return { value: { loss: frame.weights.best?.own ?? frame.marks.find(({ kind }) => kind === "aggregate")?.loss ?? null, parts: null } };
    return this.saved ? { value: this.saved.own } : this.stage.asks.want("best", this.about({ round: this.round, rule: "own" }));
  }
  get own() { return this.able === "three" ? { gamma: 1, weights: Object.fromEntries(this.cohort.map(({ id }) => [id, 1 / this.cohort.length])) } : this.base.value || { gamma: 1, weights: Object.fromEntries(this.cohort.map((one) => [one.id, one.weight ?? 0])) }; }
  get present() { return this.draft || this.set; }
  about(rest) { const { samples, split } = this.stage.state; return { run: this.stage.memberOf(this.stage.looked), ...rest, split, samples }; }
  question({ round, weights, gamma }) { return this.about({ round, weights, gamma }); }

  // Weights of the round, with four decimals, as an address has them.
  mixed(gamma, weights) {
    const all = Object.fromEntries(this.clients.map(({ id }) => [id, 0])), few = Object.entries({ ...all, ...weights }).map(([id, weight]) => [id, Number(weight.toFixed(4))]);
    return { run: this.stage.state.look, round: this.round, gamma: Number(gamma.toFixed(4)), weights: Object.fromEntries(few) };
  }

  draw(at) {
    const { stage } = this, { state } = stage, { frame } = at;
    this.element.hidden = !frame || at.stale || ownPlane(state.view) || !this.able || frame.cohort.length < 2;
    if (this.element.hidden) { this.draft = null; this.mark = ""; this.sliders.replaceChildren(); this.presets.replaceChildren(); this.numbers.textContent = this.words.textContent = this.words.said = ""; return; }
    this.round = at.round;
    this.end.replaceChildren(...termed(minused(frame.end || ""), stage.scene.terms));
    this.clients = frame.cohort;
    this.cohort = this.able === "three" && !(this.set && isBest(frame, this.set)) ? frame.cohort.filter(({ id }) => frame.through.includes(id)) : frame.cohort;
    if (isNew(this, [state.look, at.round, this.able, this.cohort.map((one) => one.id), state.client])) { this.draft = null; this.build(); }
    this.show();
  }

  build() {
    const { stage } = this, { client } = stage.state, picked = this.cohort.some((one) => one.id === client);
    const { able } = this, { frame } = stage.land.frame(stage.looked), whole = able === "live" || able === "whole", best = able === "live" || frame.weights?.best;
    const rules = able === "saved" ? [] : [["own", able === "three" ? "Mean of the three" : "The round's own"], ...(best ? [["best", "Best weights"]] : []), ...(whole ? [["equal", "Equal"]] : []), ...(able === "live" ? [["fedlaw", "FedLAW's"]] : []), ...(picked && whole ? [[`without ${client}`, `Without client ${client}`]] : [])];
    this.presets.replaceChildren(...rules.map(([rule, text]) => button({ value: rule, title: rule === "fedlaw" ? stage.scene.terms.FedLAW : null, click: () => this.preset(rule) }, text)));
    this.rows = new Map(this.cohort.map(({ id }) => [String(id), this.slider(`client ${id}`, UNIT, (value) => this.moved(id, value), { "aria-label": `Weight of client ${id}` })]));
    this.sum = this.slider("sum", SUMS, (value) => this.changed((this.present || this.own).weights, value), { "aria-label": "Sum of the weights", title: "FedLAW's gamma: the aggregate is the weighted mean times this factor" });
    this.sliders.replaceChildren(...[...this.rows.values(), this.sum].map(({ row }) => row));
  }

  slider(words, [min, max], moved, more) {
    const slider = make("input", { type: "range", min, max, step: 0.005, disabled: this.able === "saved" || (this.able === "three" && this.cohort.length > 3), input: () => moved(slider.valueAsNumber), change: () => this.released(), ...more }), output = make("output", {});
    return { slider, output, row: make("label", {}, make("span", {}, words), slider, output) };
  }

  // The weight of one client; the others share the rest as before.
  moved(id, value) {
    const { weights: before, gamma } = this.present || this.own, rest = Object.entries(before).filter(([one]) => one !== String(id)), sum = sumOf(rest.map(([, weight]) => weight));
    const weights = Object.fromEntries(Object.entries(before).map(([one, weight]) => [one, one === String(id) ? value : sum > 1e-9 ? (weight / sum) * (1 - value) : (1 - value) / rest.length]));
    this.changed(weights, gamma);
  }

  // Weights and their sum, while a slider is moved.
  changed(weights, gamma) {
    this.draft = this.mixed(gamma, weights);
    this.show();
    this.stage.mixMark = this.markOf();
    this.stage.redraw();
  }

  released() { const mix = this.draft; this.draft = null; if (mix) this.stage.set({ mix }, { replace: Boolean(this.stage.state.mix) }); }

  async preset(rule) {
    const { stage, mark: where } = this;
    if (rule === "own") { this.draft = null; stage.set({ mix: null }); return; }
    this.words.said = "";
    this.words.textContent = this.busy = { fedlaw: "Learning the weights on the proxy set ...", best: "Looking for the weights of the lowest loss ..." }[rule] || "Evaluating ...";
    this.busyAt = where;
    try {
      const value = await stage.asks.link.ask("best", this.about({ round: this.round, rule }));
      this.busy = "";
      if (where !== this.mark) return;
      const mix = this.mixed(value.gamma, value.weights);
      if (rule === "best") this.found.set(JSON.stringify(this.about({ round: this.round })), value.words);
      this.note = { of: JSON.stringify(mix), words: value.words, rule };
      stage.set({ mix });
    } catch (reason) { if (where === this.mark) this.words.textContent = String(reason.message || reason); } finally { this.busy = ""; }
  }

  // Which rule gave the weights, and its words; null for weights set by hand.
  given(mix) { return this.note && this.note.of === JSON.stringify(mix) ? this.note : null; }
  rule(mix) { return this.saved ? this.saved.words : this.given(mix)?.words || ""; }

  // What a file has of the present weights; null where there are none.
  async toSave() {
    const { link, state: { mix } } = this.stage;
    if (!mix) return null;
    const [value, own] = await Promise.all([link.ask("weights", this.question(mix)), link.ask("best", this.about({ round: mix.round, rule: "own" }))]);
    return { of: ofMix(mix), value, own, words: this.rule(mix) };
  }

  // Sliders and numbers of the present weights, against those of the round's own.
  show() {
    const { stage } = this, mix = this.present, { weights } = mix || this.own, sum = sumOf(Object.values(weights)) || 1;
    for (const one of this.presets.children) one.setAttribute("aria-pressed", String(one.value === (mix ? this.given(mix)?.rule : "own")));
    const put = ({ slider, output }, value, digits) => {
      if (document.activeElement !== slider || !this.draft) slider.value = value;
      output.textContent = minused(value.toFixed(digits));
    };
    const shares = [...this.rows.keys()].map((id) => (weights[id] ?? 0) / sum), { gamma } = mix || this.own, reach = (slider, ends, values) => { if (!this.draft) [slider.min, slider.max] = rangeOf([...ends, ...values]); };
    [...this.rows.values()].forEach((one, i) => { reach(one.slider, UNIT, shares); put(one, shares[i], 2); });
    reach(this.sum.slider, SUMS, [gamma]);
    put(this.sum, gamma, 3);
    this.sum.row.hidden = [gamma, this.own.gamma].every((one) => Math.abs(one - 1) < 5e-5); // of rounds whose weights sum to 1
    const { base, able, saved } = this, three = able === "three";
    if (this.saved) this.asked = { value: this.saved.value };
    else if (mix && (!this.asked || !this.asked.pending || !this.draft)) this.asked = stage.asks.want("weights", this.question(mix));
    else if (mix) stage.asks.wanted.add([...stage.asks.entries].find(([, entry]) => entry === this.asked)?.[0]);
    const now = mix ? this.asked : three ? stage.asks.want("weights", this.question(this.mixed(1, this.own.weights))) : base;
    this.numbers.classList.toggle("stale", Boolean(now.pending));
    const error = now.error || base.error;
    if (error) { this.numbers.textContent = error; return; }
    if (!now.value) { if (!this.numbers.textContent) this.numbers.textContent = "Evaluating ..."; return; }
    const { loss, error: wrong, parts, interpolated } = now.value, { value: own } = base, both = mix && own && own.loss !== null && loss !== null, gain = both && parts && own.parts ? loss - own.loss : null;
    const doubt = gain === null ? NaN : errorBetween({ end: parts }, { end: own.parts }), sure = gain !== null && clear(gain, doubt), amount = `${written(Math.abs(gain), 3)} ± ${written(doubt, 2)}${stage.unit}`, took = own && own.loss !== null ? ` (${written(own.loss, 4)})` : "";
    const rival = three && !stage.land.frame(stage.looked).frame.weights.best ? "the round's aggregate" : "the round's own weights"; // which the aggregate need not have
    const against = gain === null ? (own && own.loss !== null && (mix || three) ? `; ${rival} ${written(own.loss, 4)}` : "") : Math.abs(gain) < 5e-7 ? `; as ${rival}` : sure ? `; ${amount} ${gain < 0 ? "lower" : "higher"} than ${rival}${took}` : `; no clear difference to ${rival}${took}: ${withError(gain, doubt, stage.unit)}`;
    this.numbers.replaceChildren(make("b", {}, `Loss ${interpolated ? "≈ " : ""}${written(loss, 4)}${stage.unit}`), `${wrong === null ? "" : `, error ${interpolated ? "≈ " : ""}${(100 * wrong).toFixed(1)} %`}${against}`);
    this.numbers.dataset.gain = !sure ? "" : gain < 0 ? "lower" : "higher";
    const scaled = mix && Math.abs(mix.gamma - 1) > 5e-5 ? ` The sum is scaled by ${written(mix.gamma, 4)}.` : "";
    const at = mix && this.markOf(), surface = at && stage.land.surface(stage.looked), beyond = surface && !surface.inside(at.u, at.v) ? " Their mark is beyond this plane." : "";
    const rest = able === "saved" ? "They were set before this file was saved; it has no numbers of others." : "These weights are forgotten at another round, and when another run is looked at.";
    const words = mix ? `${this.rule(mix) || (three ? "" : "The aggregate of this round with these weights.")}${scaled}${beyond} ${rest}` : `Move a slider: the others share the rest.${stage.land.frame(stage.looked).frame.plane ? " The mark on the picture follows." : ""}${able === "live" ? " FedLAW's weights are learned on the proxy set." : ""}`;
    const source = { whole: "Evaluated exactly by this page. FedLAW's weights are learned live: fedscape explore.", three: `${this.exact ? "Evaluated exactly by this page" : `Interpolated on the map: ${stage.networks.why(stage.looked)}`}. Other clients weigh 0, as their models are not in this file; fedscape explore has all.` }[able] || "";
    const lacks = able !== "live" && !saved ? stage.land.frame(stage.looked).frame.weights?.lacks : "", told = (this.busyAt === this.mark && this.busy) || minused([words, source, lacks].filter(Boolean).join(" "));
    if (told !== this.words.said) this.words.replaceChildren(...termed(this.words.said = told, stage.scene.terms));
  }

  // Where the weights lie on the plane: the mean of the clients' marks, weighted; the server's place where gamma is not 1.
  markOf() {
    const mix = this.present, { stage } = this;
    if (!mix || !stage.looked) return null;
    const { frame, stale } = stage.land.frame(stage.looked), { value, error } = this.saved || (this.draft ? {} : stage.asks.want("weights", this.question(mix)));
    if (!frame || stale || error) return null;
    if (value && value.mark && !this.draft) return { name: "your weights", kind: "mix", ...value.mark, loss: value.loss };
    const sum = sumOf(Object.values(mix.weights)) || 1, placeOf = (id) => frame.marks.find((mark) => mark.name === `client ${id}`);
    const along = (axis) => sumOf(Object.entries(mix.weights).map(([id, weight]) => (weight / sum) * (placeOf(id)?.[axis] ?? 0)));
    return { name: "your weights", kind: "mix", u: along("u"), v: along("v"), away: 0, loss: null };
  }
}

const minused = (text) => text.replace(/(^|[ (])-(?=\d)/g, "$1−"); // its negative numbers with a minus sign
const ofMix = ({ round, gamma, weights }) => [round, Number(written(gamma, 4)), Object.entries(weights).map(([id, weight]) => [id, Number(written(weight, 4))])]; // as an address has them
