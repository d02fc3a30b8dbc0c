// What stands beside the pictures: the runs at the left, and at the right why the round went as it did.

// Runs: shown or not, looked at or not, accuracy, curve, and in a drawer the settings that differ.
function railOf(stage) {
  const { scene, state } = stage;
  const accuracies = stage.runs.flatMap((run) => [...(run.curves.accuracy || [])]).filter(Number.isFinite);
  const range = [Math.min(...accuracies), Math.max(...accuracies)];
  const cards = stage.runs.map((run) => {
    const on = state.runs.includes(run.key), look = run.key === state.look;
    const full = !on && state.runs.length >= MOST;
    const seeds = run.seeds.length > 1 ? `mean of seeds ${run.seeds.join(", ")}` : `seed ${run.seeds[0]}`;
    const accuracy = run.accuracy === null ? "accuracy not known" : `${(100 * run.accuracy).toFixed(1)} %`;
    const box = make("input", { type: "checkbox", checked: on, disabled: full, "aria-label": `Show ${run.label} on the stage`, title: full ? `${MOST} at most` : "On the stage", change: () => stage.compare(run.key) });
    const name = make("button", { type: "button", class: "look", "aria-pressed": String(look), title: "Look at this run", click: () => stage.look(run.key) }, swatch(run), make("span", { class: "name" }, run.label));
    const settings = run.settings.map(([setting, value]) => [make("dt", {}, setting), make("dd", {}, String(value))]);
    const drawer = run.settings.length > 0 && make("details", {}, make("summary", {}, "settings that differ"), make("dl", {}, ...settings));
    return make("li", { class: `card${on ? " on" : ""}${look ? " looked" : ""}` }, make("div", { class: "card-head" }, box, name), sparkline(run, range),
      make("p", { class: "small" }, make("b", { class: "accuracy" }, accuracy), ` · ${seeds} · ${run.rounds.length} rounds`), run.note && make("p", { class: "small warn" }, run.note), drawer);
  });
  const few = make("p", { class: "small" }, `Accuracy: ${scene.last}. Tick up to ${MOST} runs; click a name to look at it.`);
  const rest = document.getElementById("summary") && make("a", { class: "more", href: "#summary" }, "Tables and curves ↓");
  const brand = make("p", { class: "brand" }, "fedscape ", make("span", {}, "loss landscapes and drift"));
  return [brand, make("h1", {}, scene.title), few, make("ul", {}, ...cards), rest].filter(Boolean);
}

function sparkline(run, [low, high]) {
  const values = run.curves.accuracy;
  if (!values || !Number.isFinite(low)) return null;
  const [width, height] = [200, 26], y = (value) => height - 2 - ((value - low) / (high - low || 1)) * (height - 4);
  const points = [...values].map((value, i) => [(i / Math.max(values.length - 1, 1)) * width, y(value)]);
  return shape("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    shape("path", { d: pathOf(points), fill: "none", stroke: run.shade, "stroke-width": 1.6, "vector-effect": "non-scaling-stroke" }));
}

// Sentences about the run looked at, which run lies lower, the point, and the clients.
function whyOf(stage) {
  const { scene } = stage, run = stage.looked, { frame, round, absent } = stage.frameOf(run);
  const head = make("h2", {}, "Why", make("span", { class: "of" }, swatch(run), `${run.label}, round ${round ?? stage.state.round}`));
  if (!frame) return [head, make("p", {}, absent), verdictOf(run)];
  const sentences = frame.why.map(({ text, number, term: name }) => make("li", {}, number && make("b", { class: "number" }, number.replace(/(^|\s)-/, "$1−")), make("p", {}, text, " ", term(name, scene.terms))));
  return [head, make("ol", { class: "sentences" }, comparison(stage), ...sentences), pointCard(stage), clientsCard(stage, run, frame), verdictOf(run)];
}

function verdictOf(run) {
  return run.verdict && make("section", {}, make("h3", {}, "The whole run"), make("p", { class: "small" }, run.verdict));
}

// Which of the runs on the stage has the lowest loss after the round.
function comparison(stage) {
  const ends = stage.shown.map((run) => ({ run, at: stage.frameOf(run) })).filter(({ at }) => at.frame)
    .map(({ run, at }) => ({ run, round: at.round, loss: at.frame.marks.find((mark) => mark.kind === "end")?.loss ?? null })).filter((one) => one.loss !== null).sort((a, b) => a.loss - b.loss);
  if (ends.length < 2) return null;
  const first = ends[0], unit = stage.unit, after = new Set(ends.map((one) => one.round)).size === 1 ? `round ${first.round}` : "these rounds";
  const lowest = ends.filter((one) => one.loss - first.loss < 1e-6 * Math.abs(first.loss)), rest = ends.slice(lowest.length);
  const names = lowest.map((one) => one.run.label).join(" and "), meaning = term("End", stage.scene.terms);
  if (!rest.length) return make("li", {}, make("p", {}, `${names} are equal after ${after}: ${written(first.loss)}${unit}. `, meaning));
  const text = `${names} ${lowest.length > 1 ? "lie" : "lies"} lowest after ${after}: ${written(first.loss)} against ${rest.map((one) => `${one.run.label} ${written(one.loss)}`).join(", ")}. `;
  return make("li", {}, make("b", { class: "number" }, signed(first.loss - rest[0].loss) + unit), make("p", {}, text, meaning));
}

// The clicked point: its value in every picture of the stage, and where the number comes from.
function pointCard(stage) {
  const spot = stage.state.point;
  if (!spot) return make("section", { class: "point" }, make("h3", {}, "Point"), make("p", { class: "small" }, "Click a landscape, or move with the arrow keys in it: the same place is read in every picture."));
  const rows = stage.shown.map((run) => ({ run, surface: stage.surfaceOf(run) })).filter((one) => one.surface).map(({ run, surface }) => {
    const value = surface.inside(...spot) ? written(surface.value(...spot), 4) : "beyond its plane";
    return make("tr", {}, make("th", { scope: "row" }, swatch(run), run.label), make("td", { "data-run": run.key }, value, stage.exact(run, spot)));
  });
  const [rows_, columns] = stage.surfaceOf(stage.looked) ? [stage.surfaceOf(stage.looked).rows, stage.surfaceOf(stage.looked).columns] : ["", ""];
  return make("section", { class: "point" }, make("h3", {}, `Point (${written(spot[0], 3)}, ${written(spot[1], 3)})`, make("button", { type: "button", class: "plain", "aria-label": "Forget the point", click: () => stage.pickPoint(null) }, "×")),
    make("table", {}, make("tbody", {}, ...rows)),
    make("p", { class: "small" }, `${stage.quantity}, interpolated between ${rows_} x ${columns} evaluated models. Same distances from the mean of the three clients; other parameters in each run.`));
}

// The cohort: what each client holds, and by how much it raises the loss of the aggregate.
function clientsCard(stage, run, frame) {
  const { scene, state } = stage, most = Math.max(...frame.cohort.map((one) => Math.abs(one.cost || 0)), 1e-12);
  const rows = frame.cohort.map((one) => {
    const picked = one.id === state.client, total = Math.max(one.samples, 1);
    const held = one.counts.map((count, place) => [count, place]).filter(([count]) => count > 0);
    const said = held.map(([count, place]) => `${scene.classes[place] ?? place}: ${count}`).join(", ");
    const bar = make("span", { class: "classes", role: "img", "aria-label": said || "classes not known", title: said }, ...held.map(([count, place]) => {
      const piece = make("span", { class: count / total > 0.16 ? "wide" : null }, count / total > 0.16 ? String(scene.classes[place] ?? place) : "");
      const paint = scene.class_colours[place % scene.class_colours.length];
      piece.style.cssText = `flex: ${count}; background: ${paint}; color: ${brightness(paint) > 0.18 ? "#000" : "#fff"}`;
      return piece;
    }));
    const harm = make("span", { class: "harm", "aria-hidden": "true" }, make("span", { class: one.cost > 0 ? "bad" : "good" }));
    harm.firstChild.style.width = `${(50 * Math.abs(one.cost || 0)) / most}%`;
    const button = make("button", { type: "button", "aria-pressed": String(picked), "aria-label": `client ${one.id}`, click: () => stage.pickClient(one.id) }, String(one.id));
    return make("tr", { class: picked ? "picked" : null }, make("th", { scope: "row" }, button), make("td", {}, bar), make("td", { class: "figure" }, one.cost === null ? "–" : signed(one.cost, 2)), make("td", {}, harm));
  });
  const body = make("tbody", {}, ...rows);
  oneStop(body, "button");
  const picked = frame.cohort.find((one) => one.id === state.client);
  return make("section", { class: "clients" }, make("h3", {}, "Clients of the round"),
    make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...["client", "classes of its samples"].map((text) => make("th", { scope: "col" }, text)),
      make("th", { scope: "col", colspan: 2, title: "Loss of the aggregate minus its loss without this client" }, `raises the loss${stage.unit && ` [${stage.unit.trim()}]`}`))), body)),
    picked ? clientWords(picked, stage) : make("p", { class: "small" }, "Pick a client to see its training."));
}

function clientWords(one, stage) {
  const own = one.own_before === null || one.own_after === null ? "" : `Loss on its own samples ${written(one.own_before)} before training, ${written(one.own_after)} after; `;
  return make("p", { class: "small picked-client" }, make("b", {}, `Client ${one.id}: `), `${one.samples} samples, weight ${written(one.weight, 2)}. ${own}on the test samples ${written(one.loss)}${stage.unit}. `
    + `Update ${written(one.length, 2)} long, cosine with the mean ${signed(one.cosine, 2)}.`);
}
