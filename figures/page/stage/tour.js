// A tour of five steps over whatever runs there are; each step is an address.

const STEPS = [
  { title: "A landscape", text: () => "Each picture is the test loss on a plane through three clients of one round. Dark is low. The dots are client models; arrows lead to the aggregate, their mean with FedAvg's weights.", go: () => ({ view: "map", point: null, client: null }) },
  { title: "Why averaging helps", text: () => "Look where the aggregate lies against the clients. The sentences at the right say by how much averaging lowers or raises the loss in this round.", go: () => ({ view: "relief", client: null }) },
  { title: "One client", text: (stage) => (stage.state.client === null ? "Pick a client in the table at the right: its arrow is marked, and its losses are in words." : `Client ${stage.state.client} changes the aggregate most here. Its arrow is marked; the table says what data it has and by how much it raises the loss.`),
    go: (stage) => { const { frame } = stage.land.frame(stage.looked), worst = frame && [...frame.cohort].sort((a, b) => Math.abs(b.cost || 0) - Math.abs(a.cost || 0))[0]; return { view: "map", client: worst ? worst.id : null }; } },
  { title: "Two methods", text: (stage) => (stage.shown.length > 1 ? "The second picture is one run minus the other at the same distances. Where it is below zero, that run lies lower." : "Tick a second run at the left: the difference of two landscapes can then be seen as a map."), go: (stage) => ({ view: stage.shown.length > 1 ? "difference" : "map" }) },
  { title: "Over the rounds", text: () => "This is the first round with a landscape. Press Play, or drag the ruler of the time line: the landscapes follow. Drag across the curves to zoom; a double click shows all rounds again.", go: (stage) => ({ view: "map", round: stage.rounds[0] ?? stage.state.round, client: null }) },
];

class Tour {
  constructor(stage) { this.stage = stage; this.element = make("section", { class: "tour", "aria-label": "Tour", hidden: true }); }

  go(step) {
    const { stage } = this, { state, rounds } = stage;
    stage.player.stop();
    if (!state.tour) this.from = state.round; // where its end leads back to, unless the reader has gone elsewhere
    if (step < 1) { stage.set({ tour: 0, ...(state.tour === STEPS.length && state.round === rounds[0] && this.from !== undefined ? { round: this.from } : {}) }); return; }
    stage.set({ ...STEPS[step - 1].go(stage), tour: step, follow: false });
    this.element.querySelector("button")?.focus({ preventScroll: true });
    this.element.scrollIntoView({ block: "nearest" });
  }

  draw() {
    const { tour } = this.stage.state, step = STEPS[tour - 1];
    this.element.hidden = !step;
    if (!step) { this.element.replaceChildren(); return; }
    const to = (text, number) => button({ click: () => this.go(number) }, text);
    this.element.replaceChildren(make("h2", {}, `${tour} of ${STEPS.length}: ${step.title}`), make("p", {}, step.text(this.stage)), make("div", { class: "row" }, tour < STEPS.length ? to("Next", tour + 1) : to("Done", 0), tour > 1 && to("Back", tour - 1), tour < STEPS.length && to("End the tour", 0)));
  }
}
