// The state of the page as its address, and back: what stands in the address is all that decides.

const VIEWS = { map: "Map", relief: "Relief", difference: "Difference", path: "Path" };
const SMOOTH = [1, 3, 5, 9, 21]; // rounds of a moving mean
const PLAIN = { metric: "loss", axes: "same", split: "test", points: 15, samples: 1000, top: "accuracy", below: "client_variance", smooth: 1, show: "wrong" };
const SAMPLES = ["200", "1000", "5000", "all"], POINTS = [9, 15, 25, 41];

// Where the address stands: above the page; a notebook has another place (explore/widget.js).
const ADDRESS_BAR = {
  read: () => location.hash,
  write: (text, replace) => history[replace ? "replaceState" : "pushState"](null, "", text),
  follow: (callback) => { for (const event of ["popstate", "hashchange"]) addEventListener(event, callback); },
};

const decoded = (text) => { try { return decodeURIComponent(text); } catch { return ""; } };
const whole = (text) => (/^\d{1,9}$/.test(text ?? "") ? Number(text) : null);

// What is not in an address: the first and the suggested or best run, in the last round that has a landscape.
function beginning(stage) {
  const { land, scene } = stage, suggested = (scene.suggested || []).map((key) => stage.runs.find((run) => run.key === key)).filter(Boolean), runs = suggested.length ? suggested : stage.runs;
  const able = runs.filter((run) => land.rounds(run).length), first = able[0] || runs[0];
  const best = [...able].sort((a, b) => (b.accuracy ?? -1) - (a.accuracy ?? -1)).find((run) => run !== first);
  const shown = [first, best].filter(Boolean), rounds = shown.length ? land.rounds(first) : [];
  return { ...blank(), round: rounds.length ? rounds[rounds.length - 1] : stage.lastRound, runs: shown.map((run) => run.key), look: shown.length ? shown[0].key : "" };
}

const blank = () => ({ ...PLAIN, view: "map", point: null, client: null, seeds: {}, mix: null, span: null, model: "", against: null, truth: null, predicted: null, more: 0, figure: "", options: {}, follow: false, filter: "", tour: 0, turn: null });

// The state that an address says; what it says wrongly stays as it is, what it does not say is as at the beginning.
function readAddress(stage, hash, before) {
  if (!hash.includes("=")) return null;
  const given = Object.fromEntries(hash.slice(1).split("&").map((pair) => pair.split("=")));
  const text = (name) => decoded(given[name] ?? ""), known = (key) => stage.runs.some((run) => run.key === key);
  const state = { ...blank(), round: before.round, runs: before.runs, look: before.look, view: before.view };
  const keyOf = (name) => { const run = stage.runs.find((one) => one.key === name || (one.names || []).some((member) => member.name === name)); return run && run.key; };
  const keys = (given.runs || "").split(",").map(decoded).map(keyOf).filter((key, i, all) => key && all.indexOf(key) === i).slice(0, MOST);
  if (keys.length) state.runs = keys;
  state.look = state.runs.includes(text("look")) ? text("look") : state.runs.includes(state.look) ? state.look : state.runs[0] ?? "";
  const place = (name) => { const parts = text(name).split(","); return parts.length === 2 && parts.every((part) => part && Number.isFinite(Number(part))) ? parts.map(Number) : null; };
  if (given.round && Number.isFinite(Number(given.round))) state.round = stage.land.nearest(Number(given.round), stage.land.common(state.runs), state.round);
  if (text("view") in VIEWS) state.view = text("view");
  if (/^(loss|error|class \d+)$/.test(text("metric"))) state.metric = text("metric");
  if (given.axes === "own") state.axes = "own";
  if (/^(train|proxy|client \d+)$/.test(text("split"))) state.split = text("split");
  if (POINTS.includes(Number(given.points))) state.points = Number(given.points);
  if (SAMPLES.includes(given.samples)) state.samples = given.samples === "all" ? "all" : Number(given.samples);
  [state.point, state.client, state.turn] = [place("at"), whole(given.client), place("turn")];
  for (const pair of (given.seeds || "").split(",").map(decoded)) {
    const run = stage.runs.find((one) => (one.names || []).some(({ name }) => name === pair));
    if (run) state.seeds[run.key] = pair;
  }
  state.mix = mixOf(given.mix, known);
  if (given.top) state.top = text("top");
  if (given.below) state.below = text("below");
  if (SMOOTH.includes(Number(given.smooth))) state.smooth = Number(given.smooth);
  const span = /^(\d+)-(\d+)$/.exec(given.span || "");
  if (span && Number(span[1]) < Number(span[2])) state.span = [Number(span[1]), Number(span[2])];
  Object.assign(state, { model: text("model"), against: whole(given.against), truth: whole(given.truth), predicted: whole(given.predicted), more: whole(given.more) ?? 0 });
  if (["all", "differs"].includes(given.show)) state.show = given.show;
  state.figure = text("figure");
  for (const pair of text("with").split(";").filter((one) => one.includes(":"))) state.options[pair.slice(0, pair.indexOf(":"))] = pair.slice(pair.indexOf(":") + 1);
  Object.assign(state, { follow: given.follow === "1", filter: text("filter"), tour: Math.min(whole(given.tour) ?? 0, STEPS.length) });
  return state;
}

// Weights as an address has them: run, round, gamma, then a number for each client.
function mixOf(text, known) {
  const [key, round, gamma, ...rest] = (text || "").split(",").map(decoded), weights = {};
  for (const pair of rest) {
    const [id, value] = pair.split(":");
    if (whole(id) === null || !Number.isFinite(Number(value))) return null;
    weights[Number(id)] = Number(value);
  }
  return known(key) && whole(round) !== null && Number.isFinite(Number(gamma)) && rest.length ? { run: key, round: Number(round), gamma: Number(gamma), weights } : null;
}

function addressOfState(state) {
  const parts = [`round=${state.round}`, `runs=${state.runs.map(encodeURIComponent).join(",")}`, `look=${encodeURIComponent(state.look)}`, `view=${state.view}`];
  const add = (name, value) => { if (value !== null && value !== "" && value !== PLAIN[name]) parts.push(`${name}=${encodeURIComponent(value)}`); };
  const pair = (numbers, digits) => numbers && numbers.map((part) => written(part, digits)).join(",");
  add("metric", state.metric);
  add("axes", state.axes);
  add("split", state.split);
  add("points", state.points);
  add("samples", state.samples);
  if (state.point) parts.push(`at=${pair(state.point, 4)}`);
  add("client", state.client);
  if (state.turn) parts.push(`turn=${pair(state.turn, 4)}`);
  if (Object.keys(state.seeds).length) parts.push(`seeds=${Object.values(state.seeds).map(encodeURIComponent).join(",")}`);
  if (state.mix) parts.push(`mix=${[encodeURIComponent(state.mix.run), state.mix.round, written(state.mix.gamma, 4), ...Object.entries(state.mix.weights).map(([id, value]) => `${id}:${written(value, 4)}`)].join(",")}`);
  for (const name of ["top", "below", "smooth", "model", "against", "truth", "predicted", "show", "figure", "filter"]) add(name, state[name]);
  if (state.more) parts.push(`more=${state.more}`);
  if (state.span) parts.push(`span=${state.span.join("-")}`);
  const options = Object.entries(state.options).map((one) => one.join(":")).join(";");
  if (state.figure) add("with", options);
  if (state.follow) parts.push("follow=1");
  if (state.tour) parts.push(`tour=${state.tour}`);
  return `#${parts.join("&")}`;
}
