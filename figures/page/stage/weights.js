// The card of weights: the aggregate of the round at any weights of its clients. They belong to the run and round they were set for.
// A file shows the weights that were set when it was saved, and what they gave.

class WeightsCard {
  constructor(stage) {
    this.stage = stage;
    this.presets = make("div", { class: "row presets" });
    this.sliders = make("div", { class: "sliders" });
    this.numbers = make("p", { class: "what-if", role: "status" });
    this.words = make("p", { class: "small" });
    this.element = make("section", { class: "weights", hidden: true }, make("h3", {}, "Weights of the clients"), this.presets, this.sliders, this.numbers, this.words);
    this.rows = new Map();
  }

  // Of a file, what it has of its weights: {of, value, own, words}; null for others.
  get saved() { const { link, scene, state } = this.stage; return !link && state.mix && scene.what_if && JSON.stringify(ofMix(state.mix)) === JSON.stringify(scene.what_if.of) ? scene.what_if : null; }

  // What the round took: {weights, gamma}, and the answer with its loss.
  get base() { return this.saved ? { value: this.saved.own } : this.stage.asks.want("best", this.about({ round: this.round, rule: "own" })); }
  get own() { return this.base.value || { gamma: 1, weights: Object.fromEntries(this.cohort.map((one) => [one.id, one.weight ?? 0])) }; }
  get present() { return this.draft || this.stage.state.mix; }
  about(rest) { const { samples, split } = this.stage.state; return { run: this.stage.memberOf(this.stage.looked), ...rest, split, samples }; }
  question({ round, weights, gamma }) { return this.about({ round, weights, gamma }); }

  // Weights of the round, with four decimals, as an address has them.
  mixed(gamma, weights) {
    const few = Object.entries(weights).map(([id, weight]) => [id, Number(weight.toFixed(4))]);
    return { run: this.stage.state.look, round: this.round, gamma: Number(gamma.toFixed(4)), weights: Object.fromEntries(few) };
  }

  draw(at) {
    const { stage } = this, { state } = stage, { frame } = at;
    this.element.hidden = !(stage.link || this.saved) || !frame || at.stale || ownPlane(state.view);
    if (this.element.hidden) { this.draft = null; this.mark = ""; this.sliders.replaceChildren(); this.presets.replaceChildren(); this.numbers.textContent = this.words.textContent = this.words.said = ""; return; }
    this.cohort = frame.cohort;
    this.round = at.round;
    if (isNew(this, [state.look, at.round, this.cohort.map((one) => one.id), state.client])) { this.draft = null; this.build(); }
    this.show();
  }

  build() {
    const { stage } = this, { client } = stage.state, picked = this.cohort.some((one) => one.id === client);
    const live = Boolean(stage.link), rules = !live ? [] : [["own", "The round's own"], ["equal", "Equal"], ["fedlaw", "FedLAW's"], ...(picked ? [[`without ${client}`, `Without client ${client}`]] : [])];
    this.presets.replaceChildren(...rules.map(([rule, text]) => button({ value: rule, title: rule === "fedlaw" ? stage.scene.terms.FedLAW : null, click: () => this.preset(rule) }, text)));
    this.rows = new Map(this.cohort.map(({ id }) => [String(id), this.slider(`client ${id}`, [0, 1], (value) => this.moved(id, value), { "aria-label": `Weight of client ${id}` })]));
    this.sum = this.slider("sum", [0.5, 1.5], (value) => this.changed((this.present || this.own).weights, value), { "aria-label": "Sum of the weights", title: "FedLAW's gamma: the aggregate is the weighted mean times this factor" });
    this.sliders.replaceChildren(...[...this.rows.values(), this.sum].map(({ row }) => row));
  }

  slider(words, [min, max], moved, more) {
    const slider = make("input", { type: "range", min, max, step: 0.005, disabled: !this.stage.link, input: () => moved(slider.valueAsNumber), change: () => this.released(), ...more }), output = make("output", {});
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
    this.words.textContent = rule === "fedlaw" ? "Learning the weights on the proxy set ..." : "Evaluating ...";
    try {
      const value = await stage.link.ask("best", this.about({ round: this.round, rule }));
      if (where !== this.mark) return;
      const mix = this.mixed(value.gamma, value.weights);
      this.note = { of: JSON.stringify(mix), words: value.words, rule };
      stage.set({ mix });
    } catch (reason) { if (where === this.mark) this.words.textContent = String(reason.message || reason); }
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
      output.textContent = value.toFixed(digits);
    };
    for (const [id, one] of this.rows) put(one, (weights[id] ?? 0) / sum, 2);
    const { gamma } = mix || this.own;
    put(this.sum, gamma, 3);
    this.sum.row.hidden = [gamma, this.own.gamma].every((one) => Math.abs(one - 1) < 5e-5); // of rounds whose weights sum to 1
    const { base } = this;
    if (this.saved) this.asked = { value: this.saved.value };
    else if (mix && (!this.asked || !this.asked.pending || !this.draft)) this.asked = stage.asks.want("weights", this.question(mix));
    else if (mix) stage.asks.wanted.add([...stage.asks.entries].find(([, entry]) => entry === this.asked)?.[0]);
    const now = mix ? this.asked : base;
    this.numbers.classList.toggle("stale", Boolean(now.pending));
    const error = now.error || base.error;
    if (error) { this.numbers.textContent = error; return; }
    if (!now.value) { if (!this.numbers.textContent) this.numbers.textContent = "Evaluating ..."; return; }
    const { loss, error: wrong, parts } = now.value, gain = mix && base.value && loss !== null && base.value.loss !== null ? loss - base.value.loss : null;
    const doubt = gain === null ? NaN : errorBetween({ end: parts }, { end: base.value.parts }), sure = gain !== null && clear(gain, doubt), amount = `${written(Math.abs(gain), 3)} ± ${written(doubt, 2)}${stage.unit}`;
    const against = gain === null ? "" : Math.abs(gain) < 5e-7 ? "; as the round's aggregate" : sure ? `; ${amount} ${gain < 0 ? "lower" : "higher"} than the round's aggregate` : `; no clear difference to the round's aggregate (${withError(gain, doubt, stage.unit)})`;
    this.numbers.replaceChildren(make("b", {}, `Loss ${written(loss, 4)}${stage.unit}`), `${wrong === null ? "" : `, error ${(100 * wrong).toFixed(1)} %`}${against}`);
    this.numbers.dataset.gain = !sure ? "" : gain < 0 ? "lower" : "higher";
    const scaled = mix && Math.abs(mix.gamma - 1) > 5e-5 ? ` The sum is scaled by ${written(mix.gamma, 4)}.` : "";
    const rest = this.saved ? "They were set before this file was saved; it has no numbers of others." : "They are forgotten at another round, and when another run is looked at.";
    const words = mix ? `${this.rule(mix) || "The aggregate of this round with these weights."}${scaled} ${rest}` : "Move a slider: the others share the rest. The mark on the picture follows. FedLAW's weights are learned on the proxy set.";
    if (words !== this.words.said) this.words.replaceChildren(...termed(this.words.said = words, stage.scene.terms));
  }

  // Where the weights lie on the plane: the mean of the clients' marks, weighted; the server's place where gamma is not 1.
  markOf() {
    const mix = this.present, { stage } = this;
    if (!mix || !(stage.link || this.saved) || !stage.looked) return null;
    const { frame, stale } = stage.land.frame(stage.looked), value = this.saved ? this.saved.value : !this.draft && stage.asks.want("weights", this.question(mix)).value;
    if (!frame || stale) return null;
    if (value && value.mark) return { name: "your weights", kind: "mix", ...value.mark, loss: value.loss };
    const sum = sumOf(Object.values(mix.weights)) || 1, placeOf = (id) => frame.marks.find((mark) => mark.name === `client ${id}`);
    const along = (axis) => sumOf(Object.entries(mix.weights).map(([id, weight]) => (weight / sum) * (placeOf(id)?.[axis] ?? 0)));
    return { name: "your weights", kind: "mix", u: along("u"), v: along("v"), away: 0, loss: null };
  }
}

const ofMix = ({ round, gamma, weights }) => [round, Number(written(gamma, 4)), Object.entries(weights).map(([id, weight]) => [id, Number(written(weight, 4))])]; // as an address has them
