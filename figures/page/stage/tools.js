// What stands above the pictures: which view, which number, and the rest under Detail.

function toolsOf(stage) {
  const { state, land } = stage, { view, metric } = state, frames = stage.shown.map((run) => land.frame(run).frame).filter((frame) => frame?.plane);
  const errors = frames.some((frame) => frame.plane.metrics.error) || metric !== "loss";
  const kept = stage.link || stage.scene.models?.values, why = { models: kept ? "" : "this file has no map of models", map: "", difference: land.noDifference, relief: stage.painter.gl ? "" : "this browser has no WebGL 2", path: stage.link || stage.runs.some((run) => run.path.plane) ? "" : "no run kept two global models" };
  const views = segments(stage.id("view"), "Picture", Object.entries(VIEWS).map(([name, text]) => [name, text, why[name]]), view, (name) => stage.set({ view: name }));
  const option = (value, words) => make("option", { value, selected: value === metric }, words), test = ownPlane(view) ? "test" : stage.splitWords();
  const several = stage.scene.classes.map((name, i) => [`class ${i}`, name]).filter(([value]) => stage.link || frames.some((frame) => frame.plane.metrics[value]));
  const classes = several.length ? [make("optgroup", { label: "error of one class" }, ...several.map(([value, name]) => option(value, `error of class ${name}`)))] : [];
  const select = make("select", { "aria-label": "Number on the map", disabled: !errors || ownPlane(view), title: view === "path" ? "A path lies on the loss" : null, change: (event) => stage.set({ metric: event.target.value }) }, option("loss", `${test} loss`), option("error", `${test} error`), ...classes);
  return [views, select, detailOf(stage, errors)];
}

function detailOf(stage) {
  const { state, land } = stage, run = stage.looked, at = state.view === "path" ? land.path(run) : state.view === "models" ? land.models() : land.frame(run), { frame } = at;
  const through = frame && frame.plane && frame.through ? `The plane of ${stage.named(run)} goes through its clients ${frame.through.join(", ")}: u from the first to the second, v across, towards the third; 0 is their mean.` : "";
  const words = state.view === "models" ? ["The map has the first two principal coordinates of the distances between all models of the last three rounds that kept them. Models of one basin have no barrier between their means.", frame ? `${percent(frame.explained)} of the squared distances are on it. ${frame.samples}` : ""] : state.view === "path" ? ["The plane spans the first two principal components of the global models of all rounds. The dots are these models, projected onto it.", frame ? frame.samples : ""]
    : [through, "The same place in two pictures is equally far from that mean; it is not the same model.", run.proxy === false || !stage.link ? "" : `Proxy set: ${stage.scene.terms["Proxy set"]}`, "A client whose mark is hollow lies off the plane: the mark is its projection. Each mark says its distance.", frame ? frame.samples : ""];
  const splits = [["test", "test"], ["train", "training"], ...(run.proxy === false ? [] : [["proxy", "proxy set"]]), ...(frame && frame.cohort ? frame.cohort.map((one) => [`client ${one.id}`, `client ${one.id}'s`]) : [])];
  if (!splits.some(([value]) => value === state.split)) splits.push([state.split, stage.splitWords()]);
  const live = stage.link ? [make("div", { class: "choices" }, labelled("Samples of", splits, state.split, (split) => stage.set({ split })),
    labelled("at most", SAMPLES.map((value) => [value, value === "all" ? "all of them" : `${value} samples`]), state.samples, (value) => stage.set({ samples: value === "all" ? value : Number(value) })),
    labelled("Grid", POINTS.map((value) => [value, `${value} x ${value} models`]), state.points, (value) => stage.set({ points: Number(value) })))] : [];
  const detail = make("details", { class: "detail" }, make("summary", {}, "Detail"), make("div", {}, ...words.filter(Boolean).map((text) => make("p", {}, text)), ...live,
    make("label", {}, make("input", { type: "checkbox", checked: state.axes === "own", change: (event) => stage.set({ axes: event.target.checked ? "own" : "same" }) }), " Axes of its own for each picture"),
    make("div", { class: "row" }, button({ click: () => { stage.camera.reset(); stage.state.turn = null; stage.write(true); stage.redraw(); } }, "Turn the relief back"), button({ click: () => saveNumbers(stage) }, "Numbers (CSV)"))));
  detail.open = Boolean(stage.tools.querySelector("details[open]"));
  return detail;
}
