// The clients of the round: what each client holds, and by how much it raises the loss of the aggregate.
function clientsCard(stage, run, frame) {
  const { scene, state } = stage, most = Math.max(...frame.cohort.map((one) => Math.abs(one.cost || 0)), 1e-12);
  const errors = frame.cohort.map((one) => one.cost_error).filter((error) => error > 0), shown = errors.length ? Math.max(...errors) : most;
  const decimals = Math.min(Math.max(1 - Math.floor(Math.log10(shown)), 0), 8), fixed = (value) => (value === null ? "?" : value.toFixed(decimals)); // two digits of the largest error, in every row
  const rows = frame.cohort.map((one) => {
    const picked = one.id === state.client, total = Math.max(one.samples, 1);
    const held = one.counts.map((count, place) => [count, place]).filter(([count]) => count > 0);
    const said = heldWords(one, stage);
    const bar = make("span", { class: "classes", role: "img", "aria-label": said || "classes not known", title: said }, ...held.map(([count, place]) => {
      const piece = make("span", { class: count / total > 0.16 ? "wide" : null }, count / total > 0.16 ? stage.className(place) : "");
      const paint = scene.class_colours[place % scene.class_colours.length];
      piece.style.cssText = `flex: ${count}; background: ${paint}; color: ${brightness(paint) > 0.18 ? "#000" : "#fff"}`;
      return piece;
    }));
    const harm = make("span", { class: "harm", "aria-hidden": "true" }, make("span", { class: `${one.cost > 0 ? "bad" : "good"}${clear(one.cost, one.cost_error) ? "" : " unclear"}` }));
    harm.firstChild.style.width = `${(50 * Math.abs(one.cost || 0)) / most}%`;
    const pick = button({ "aria-pressed": String(picked), "aria-label": `client ${one.id}`, click: () => stage.pickClient(one.id) }, String(one.id));
    return make("tr", { class: picked ? "picked" : null }, make("th", { scope: "row" }, pick), make("td", {}, bar), make("td", { class: "figure" }, one.cost === null ? "–" : [`${one.cost > 0 ? "+" : ""}${fixed(one.cost)}`.replace("-", "−"), make("span", { class: "error" }, ` ± ${fixed(one.cost_error)}`)]), make("td", {}, harm));
  });
  const body = make("tbody", {}, ...rows);
  oneStop(body, "button");
  const picked = frame.cohort.find((one) => one.id === state.client);
  return make("section", { class: "clients" }, make("h3", {}, "Clients of the round"),
    make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...["client", "classes"].map((text) => make("th", { scope: "col" }, text)),
      make("th", { scope: "col", colspan: 2, title: "Loss of the aggregate minus its loss without this client ± its standard error over the samples; pale where it is not clear" }, `raises the loss${stage.unit && ` [${stage.unit.trim()}]`}`))), body)),
    picked ? clientWords(picked, stage) : make("p", { class: "small" }, "Pick a client to see its training."));
}

// How many samples of each class a client holds; empty where that is not known.
const heldWords = ({ counts }, stage) => counts.map((count, place) => count > 0 && `${stage.className(place)}: ${count}`).filter(Boolean).join(", ");

function clientWords(one, stage) {
  const held = heldWords(one, stage);
  const own = one.own_before === null || one.own_after === null ? "" : `Loss on its own samples ${written(one.own_before)} before training, ${written(one.own_after)} after; `;
  return make("p", { class: "small picked-client" }, make("b", {}, `Client ${one.id}: `), `${one.samples} samples${held && ` (${held})`}, weight ${written(one.weight, 2)}. ${own}on the ${stage.splitWords()} samples ${written(one.loss)}${stage.unit}. `
    + `Update ${written(one.length, 2)} long, cosine with the mean ${signed(one.cosine, 2)}.`);
}
