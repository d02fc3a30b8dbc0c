// The card of samples: what a model of the round predicts, as a confusion matrix and as pictures.

const CARDS = 24; // pictures at first, and more at each "More"

class SamplesCard {
  constructor(stage) {
    this.stage = stage;
    this.controls = make("div", { class: "row small" });
    this.content = make("div", {});
    this.element = make("section", { class: "samples", hidden: true }, make("h3", {}, "Samples"), this.controls, this.content);
  }

  // The model as the server takes it.
  model() {
    const { model, point, mix } = this.stage.state;
    if (model === "point") return point && { spot: point };
    if (model === "weights") return mix ? { weights: mix.weights, gamma: mix.gamma } : "aggregate";
    return model;
  }

  draw(at) {
    const { stage } = this, { state } = stage, { frame } = at;
    this.element.hidden = !frame || at.stale || !stage.scene.classes.length || (!stage.link && ownPlane(state.view));
    if (this.element.hidden) return;
    if (!stage.link && !stage.networks.has(stage.looked, at.round)) {
      const why = stage.networks.why(stage.looked);
      this.controls.replaceChildren();
      this.content.replaceChildren(make("p", { class: "small" }, `No samples of this round: ${why}. ${LIVE}`));
      return;
    }
    const there = ([name]) => stage.link || ["", "point", "weights"].includes(name) || carriedModel(frame, name);
    const clients = frame.cohort.map((one) => one.id), pick = (label, options, present, act) => labelled(label, options, present, (value) => stage.set(act(value)));
    const models = [["", "choose a model"], ["end", "end"], ["start", "start"], ["aggregate", "aggregate"], ...(state.point ? [["point", "the point"]] : []), ...(state.mix ? [["weights", "your weights"]] : []), ...clients.map((id) => [`client ${id}`, `client ${id}`])].filter(there);
    const lacking = lackingIn({ ...state, client: null }, clients);
    if (!lacking.length && !models.some(([value]) => value === state.model)) models.push([state.model, state.model]);
    const rest = state.model ? [pick("against", [["", "none"], ...clients.filter((id) => there([`client ${id}`])).map((id) => [id, `client ${id}`])], state.against, (value) => ({ against: value === "" ? null : Number(value), show: value === "" && state.show === "differs" ? "wrong" : state.show, more: 0 })),
      pick("show", [["wrong", "wrong ones"], ...(state.against === null ? [] : [["differs", "two predictions"]]), ["all", "all"]], state.show, (show) => ({ show, more: 0 }))] : [];
    this.controls.replaceChildren(pick("of model", models, state.model, (model) => ({ model, truth: null, predicted: null, more: 0 })), ...rest);
    if (state.model && lacking.length) { this.content.replaceChildren(make("p", { class: "small" }, `Round ${at.round} has no client ${idsOf(lacking)}: choose another model.`)); return; }
    const model = state.model && this.model();
    if (!model) { this.content.replaceChildren(...(state.model ? [make("p", { class: "small" }, `${stage.land.surface(stage.looked) ? "Click a landscape first: there" : "There"} is no point.`)] : [])); return; }
    const mode = state.show === "differs" && state.against === null ? "wrong" : state.show;
    const entry = stage.asks.want("samples", { run: stage.memberOf(stage.looked), round: at.round, model, against: state.against, split: state.split, truth: state.truth, predicted: state.predicted, mode, limit: CARDS * (1 + state.more) });
    this.content.classList.toggle("stale", Boolean(entry.pending && this.value));
    if (entry.value) this.value = entry.value;
    if (entry.error || !this.value) { this.content.replaceChildren(make("p", { class: "small" }, entry.error || "Predicting ...")); return; }
    const scroll = this.content.querySelector(".scroll")?.scrollTop;
    this.content.replaceChildren(...this.shown(this.value));
    if (scroll) this.content.querySelector(".scroll").scrollTop = scroll;
  }

  shown(value) {
    const { stage } = this, { state } = stage, named = (label) => value.classes[label] ?? String(label), picked = state.truth !== null || state.predicted !== null;
    const cards = value.cards.map((card) => {
      const words = `sample ${card.number}: class ${named(card.truth)}, predicted ${named(card.predicted)}${card.against === null ? "" : `, by client ${state.against} ${named(card.against)}`}, loss ${written(card.loss)}`;
      const picture = card.picture ? make("img", { src: card.picture, alt: words, width: 48, height: 48 }) : make("span", { class: "inputs", role: "img", "aria-label": words }, (card.numbers || []).slice(0, 6).map((one) => written(one, 2)).join(" "));
      const right = (label) => (label === card.truth ? "= " : "≠ ") + named(label);
      return make("li", { title: words }, picture, make("b", {}, named(card.truth)), make("span", {}, right(card.predicted)), card.against !== null && make("span", { class: "small" }, right(card.against)));
    });
    const more = value.total > value.cards.length && button({ click: () => stage.set({ more: state.more + 1 }) }, `More (${value.cards.length} of ${value.total})`);
    return [this.confusion(value, named), make("p", { class: "small" }, `${value.total} samples: ${value.words}. `, picked && button({ click: () => stage.set({ truth: null, predicted: null, more: 0 }) }, "All classes")), make("ul", { class: "cards" }, ...cards), more].filter(Boolean);
  }

  // Rows: classes; columns: predictions. A click on a cell shows its samples.
  confusion({ confusion, classes }, named) {
    const { stage } = this, { state } = stage;
    if (!confusion.length || classes.length > 20) return null;
    const most = Math.max(1, ...confusion.flat());
    const rows = confusion.map((row, truth) => make("tr", {}, make("th", { scope: "row", title: named(truth) }, named(truth)), ...row.map((count, predicted) => {
      const here = state.truth === truth && state.predicted === predicted, share = Math.sqrt(count / most), words = `${count} of class ${named(truth)} predicted as ${named(predicted)}`;
      const cell = button({ "aria-pressed": String(here), "aria-label": words, title: words, click: () => stage.set(here ? { truth: null, predicted: null, more: 0 } : { truth, predicted, more: 0 }) }, count ? String(count) : "");
      cell.style.setProperty("--share", `${Math.round(60 * share)}%`);
      return make("td", { class: truth === predicted ? "right" : null }, cell);
    })));
    const body = make("tbody", {}, ...rows);
    oneStop(body, "button");
    const long = classes.some((_, i) => named(i).length > 2), heads = classes.map((_, i) => make("th", { scope: "col", title: named(i) }, make("span", {}, named(i))));
    return make("div", { class: "wide" }, make("table", { class: `confusion${long ? " long" : ""}` }, make("caption", { class: "small" }, "Samples of a class (row) by what is predicted (column). Blue: right."),
      make("thead", {}, make("tr", {}, make("td", {}), make("th", { scope: "colgroup", colspan: classes.length, class: "axis" }, "predicted as")), make("tr", {}, make("th", { scope: "col", class: "axis" }, "class"), ...heads)), body));
  }
}
