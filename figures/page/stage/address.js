// The state of the page as its address, and back: what stands in the address is all that decides.

const VIEWS = Object.fromEntries(ACCEPTED.fields.view.one.map((name) => [name, name[0].toUpperCase() + name.slice(1)]));
const ownPlane = (view) => view === "path" || view === "models"; // of all rounds, not of the round on the stage
const { most: MOST, largest: LARGEST, least: LEAST_SUM } = ACCEPTED; // landscapes side by side, size of a weight and of the sum of weights, and size of a sum that counts as 0
const PLAIN = { metric: "loss", axes: "same", split: "test", points: 15, samples: 1000, top: "accuracy", below: "client_variance", smooth: 1, show: "wrong", more: 0, follow: false, tour: 0, charts: "" };
const numberOf = (text) => (/^\d{1,9}$/.test(text ?? "") ? Number(text) : null), choicesOf = (name) => ACCEPTED.fields[name].one.map((text) => numberOf(text) ?? text);
const SMOOTH = choicesOf("smooth"), POINTS = choicesOf("points"), SAMPLES = ACCEPTED.fields.samples.one;

// Where the address stands: above the page; a notebook has another place (explore/widget.js).
const ADDRESS_BAR = {
  read: () => location.hash,
  write: (text, replace) => history[replace ? "replaceState" : "pushState"](null, "", text),
  follow: (callback) => { for (const event of ["popstate", "hashchange"]) addEventListener(event, callback); },
};

const decoded = (text) => { try { return decodeURIComponent(text); } catch { return text; } };

// What is not in an address, as readAddress has it: what a file begins with; else the first and the suggested or best run of its data that did not diverge, of those that
// have a map where any has one, in the last round of the first, and `past`, a line where a run that diverged would come first.
function beginning(stage) {
  const { land, scene } = stage, suggested = (scene.suggested || []).map((key) => stage.runs.find((run) => run.key === key)).filter(Boolean), runs = suggested.length ? suggested : stage.runs;
  const able = [[runs, "mapped"], [stage.runs, "mapped"], [runs, "rounds"]].map(([some, kind]) => some.filter((run) => land[kind](run).length)).find((some) => some.length) || [], sound = able.filter((run) => run.state !== "diverged"), first = sound[0] || able[0] || runs[0];
  const best = [...(sound.length ? sound : able)].sort((a, b) => (b.accuracy ?? -1) - (a.accuracy ?? -1)).find((run) => run !== first && run.data === first.data);
  const shown = [first, best].filter(Boolean), rounds = shown.length ? land.rounds(first) : [];
  const state = { ...blank(stage), round: rounds.length ? rounds[rounds.length - 1] : stage.lastRound, runs: shown.map((run) => run.key), look: shown.length ? shown[0].key : "" };
  return scene.start ? readAddress(stage, scene.start, state) : { state, wrong: [], past: able[0] && first !== able[0] ? `${able[0].label} diverged: the page begins with ${first.label}.` : "" };
}

const complaint = (wrong, whole = false) => (whole ? `${wrong}. The page is shown as it begins.` : wrong.length ? `This address cannot be shown as it is: ${wrong.slice(0, 3).join("; ")}${wrong.length > 3 ? `; and ${wrong.length - 3} more` : ""}. The rest of it is shown.` : "");

const TWO = "a difference is that of two runs";

// In a file the samples are those of its landscapes.
const blank = ({ link, scene }) => ({ ...PLAIN, split: (!link && scene.split) || PLAIN.split, view: "map", point: null, client: null, seeds: {}, mix: null, span: null, model: "", against: null, truth: null, predicted: null, figure: "", options: {}, filter: "", turn: null });

const keyOf = (stage, name) => stage.runs.find((run) => run.key === name || (run.names || []).some((member) => member.name === name))?.key;
const names = (some) => some.map(encodeURIComponent).join(",");
const pairs = ["two numbers", (text) => { const parts = text.split(",").map((part) => (part ? Number(part) : NaN)); return parts.length === 2 && parts.every(Number.isFinite) ? parts : null; }, (pair) => pair.map((part) => written(part, 4)).join(",")];

// What `fields.json` says of a field, for notebooks too; `also` checks what this stage has.
function plainly(name, also = () => true, write = undefined) {
  const { words, one = [], pattern = "(?!)" } = ACCEPTED.fields[name], fits = new RegExp(`^(?:${pattern})$`);
  return [words || one.join(", "), (text, about) => ((one.includes(text) || fits.test(text)) && also(text, about) ? numberOf(text) ?? text : null), write];
}
const ofClasses = (text, { stage }) => Number(text.replace("class ", "")) < stage.scene.classes.length;

// What a field of an address accepts, in words, how its text is read, and how its value is written where that is not its text. Read gives null or
// undefined for what is no value.
const FIELDS = {
  round: plainly("round"),
  runs: ["names of runs here", null, names],
  look: [ACCEPTED.fields.look.words, (text, { stage, state }) => state.runs.find((key) => key === keyOf(stage, text))],
  view: plainly("view"),
  metric: plainly("metric", (text, about) => !text.startsWith("class") || ofClasses(text, about)),
  axes: plainly("axes"),
  split: plainly("split", (text, { stage }) => stage.link || text === blank(stage).split),
  points: plainly("points"), samples: plainly("samples"),
  at: pairs, client: plainly("client"),
  turn: ["two angles up to 1000000 degrees", (text) => { const pair = pairs[1](text); return pair && pair.every((angle) => Math.abs(angle) <= 1e6) ? pair : null; }, pairs[2]],
  seeds: ["names of runs here", (text, { stage, raw }) => {
    const names = raw.split(",").map(decoded), keys = names.map((name) => keyOf(stage, name));
    return keys.every(Boolean) ? (stage.link ? Object.fromEntries(keys.map((key, i) => [key, names[i]])) : {}) : null;
  }, (seeds) => names(Object.values(seeds))],
  mix: [`run, round, gamma and client:weight of each client, numbers up to ${LARGEST}, where neither gamma nor the sum of the weights is 0`, (text, { stage, raw }) => mixOf(raw, stage), textOfMix],
  top: plainly("top"), below: plainly("below"), smooth: plainly("smooth"), model: plainly("model"), against: plainly("against"), truth: plainly("truth", ofClasses), predicted: plainly("predicted", ofClasses),
  show: plainly("show"),
  figure: plainly("figure", (text, { stage }) => stage.link),
  charts: plainly("charts"),
  filter: ["a text", (text) => text], more: plainly("more"),
  span: ["two rounds, such as 3-9", (text) => { const [, from, to] = /^(\d{1,9})-(\d{1,9})$/.exec(text) || []; return Number(from) < Number(to) ? [Number(from), Number(to)] : null; }, (span) => span.join("-")],
  with: ["option:value", (text) => { const parts = text.split(";"); return parts.every((one) => one.indexOf(":") > 0) ? Object.fromEntries(parts.map((one) => [one.slice(0, one.indexOf(":")), one.slice(one.indexOf(":") + 1)])) : null; },
    (options, { figure }) => (figure ? encodeURIComponent(Object.entries(options).map((one) => one.join(":")).join(";")) : "")],
  follow: plainly("follow", undefined, Number), tour: plainly("tour"),
};
const STATE = { at: "point", with: "options" }; // fields whose name in the state is another

// Moves fields from the query of the address to after the #, where those that are there already stay. A token is none, nor is in a file what others put there.
function takeQuery(live) {
  const [query, after] = [location.search, location.hash].map((text) => text.slice(1).split("&").filter(Boolean)), name = (part) => part.split("=")[0];
  const ours = query.filter((part) => (live ? !["token", "open"].includes(name(part)) : Object.hasOwn(FIELDS, name(part)))), rest = live ? [] : query.filter((part) => !ours.includes(part));
  const fields = [...ours.filter((part) => !after.some((one) => name(one) === name(part))).map((part) => part.replaceAll("+", "%20")), ...after];
  if (query.length > rest.length) history.replaceState(null, "", location.pathname + (rest.length ? `?${rest.join("&")}` : "") + (fields.length ? `#${fields.join("&")}` : ""));
}

// The state that an address says: {state, wrong}; null for no address, and one of a place below the stage. What it does not say, and what it says wrongly, is as
// at the beginning; `wrong` has a phrase for each of the latter.
function readAddress(stage, hash, before) {
  if (!hash.includes("=")) return hash.length < 2 || document.getElementById(decoded(hash.slice(1))) ? null : { state: before, wrong: [`The address ${hash.slice(0, 60)} names nothing of this page`], whole: true };
  const parts = hash.slice(1).split("&").filter(Boolean).map((pair) => [pair.split("=")[0], pair.split("=").slice(1).join("=")]), given = new Map(parts);
  const state = { ...blank(stage), round: before.round, runs: before.runs, look: before.look, view: before.view }, wrong = [], short = (text) => (text.length > 60 ? `${text.slice(0, 60)}...` : text);
  for (const name of new Set(parts.map(([one]) => one).filter((one, i, all) => all.indexOf(one) !== i))) wrong.push(`${short(name) || "a part without a name"} is there twice; the last one counts`);
  const named = (given.get("runs") || "").split(",").filter(Boolean).map(decoded), keys = [...new Set(named.map((name) => keyOf(stage, name)).filter(Boolean))];
  for (const name of named) if (!keyOf(stage, name)) wrong.push(`there is no run ${short(name)} here`);
  if (given.has("runs") && !named.length) wrong.push(`runs is empty, not ${FIELDS.runs[0]}`);
  if (keys.length > MOST) wrong.push(`${MOST} of its ${keys.length} runs are shown`);
  if (keys.length) {
    state.runs = keys.slice(0, MOST);
    state.round = state.runs.map((key) => stage.land.common([key]).at(-1)).find((round) => round !== undefined) ?? before.round; // the last of the first named
  } else if (given.has("look")) state.runs = stage.withRun(state.runs, keyOf(stage, decoded(given.get("look"))));
  if (!state.runs.includes(state.look)) state.look = state.runs[0] ?? "";
  given.delete("runs");
  for (const [name, raw] of given) {
    const [accepts, read] = Object.hasOwn(FIELDS, name) ? FIELDS[name] : [], text = decoded(raw), value = read && read(text, { stage, state, raw });
    if (!read) wrong.push(`${short(name) || "a part without a name"} is no field`);
    else if (value === null || value === undefined) wrong.push(`${name} is ${short(text || raw) || "empty"}, not ${accepts}`);
    else state[STATE[name] || name] = value;
  }
  if (state.view === "difference" && state.runs.length < 2) { wrong.push(`view is difference, and ${TWO}`); state.view = "map"; }
  const { round } = state, near = stage.land.nearest(round, stage.land.held(state.runs), before.round);
  state.round = (state.follow ? stage.player.latest(state) : near) ?? near;
  const there = stage.runs.some((run) => state.runs.includes(run.key) && stage.land.rounds(run).includes(state.round) && !run.damaged?.[state.round]);
  if (given.has("round") && near !== round) wrong.push(`there is no ${there ? stage.land.nothing(round, state.runs) : `landscape of round ${round}`}${there ? `; round ${state.round} is shown` : `, nor of round ${state.round}, which is on the stage`}`);
  const { mix, span } = state, ends = spanOf(stage, span, state.runs);
  if (String(span) !== String(ends)) { wrong.push(`span is ${span.join("-")}, and the rounds are ${spanOf(stage, [0, 1e9], state.runs)?.join(" to ") ?? stage.land.ends(state.runs)[1]}`); state.span = ends; }
  const sum = mix ? sumOf(Object.values(mix.weights)) : 1;
  if (Math.abs(sum - 1) > ROUNDED) { wrong.push(`its weights sum to ${minused(written(sum))} and are scaled to sum 1`); for (const id of Object.keys(mix.weights)) mix.weights[id] = Number((mix.weights[id] / sum).toFixed(4)); }
  if (mix && (mix.run !== state.look || mix.round !== state.round)) { wrong.push(`its weights are of round ${mix.round} of ${stage.runs.find((run) => run.key === mix.run).label}, which is not looked at`); state.mix = null; }
  return { state, wrong };
}

// What a span shares with the rounds that there are, or will be; null for none.
function spanOf({ runs, land }, span, keys) {
  const [firstRound, lastRound] = land.ends(keys), ends = runs.filter((run) => keys.includes(run.key) && ["growing", "complete"].includes(run.state)).map((run) => run.planned - 1), last = Math.max(lastRound, ...ends.filter(Number.isFinite));
  const shared = span && [Math.max(span[0], firstRound), Math.min(span[1], last)];
  return shared && shared[0] < shared[1] ? shared : null;
}

// What an address says of clients, once the round is there: weights of all of its clients, and a client that it has.
function checkClients(stage, run, { frame, round, stale }) {
  if (!frame || stale) return;
  const { state } = stage, ids = frame.cohort.map((one) => one.id), some = Object.keys(state.mix ? state.mix.weights : {}).map(Number), where = `round ${round} of ${run.label}`;
  const say = (text) => stage.say([stage.notice, text].filter(Boolean).join(" "));
  if (some.length && (some.length !== ids.length || some.some((id) => !ids.includes(id)))) {
    Object.assign(stage, { mixMark: null });
    state.mix = null;
    stage.write(true);
    stage.redraw();
    say(`The weights are those of clients ${some.slice(0, 9).join(", ")}, and ${where} has clients ${ids.join(", ")}: the round's own are shown.`);
  }
  const number = Number((run.text || []).find(([name]) => name === "clients.number")?.[1]), others = Object.values(run.shown).flatMap(({ cohort = [] }) => cohort.map((one) => one.id));
  const never = stage.unchecked ? lackingIn(state, ids).filter(([, id]) => !(id < number) && !others.includes(id)) : [];
  const surface = stage.land.surface(run), { point } = state;
  if (stage.unchecked && point && surface && !surface.inside(...point)) say(`The point (${point.map((part) => written(part)).join(", ")}) is beyond the plane of ${where}.`);
  stage.unchecked = false;
  if (!never.length) return;
  say(`There is no client ${idsOf(never)} here: ${where} has clients ${ids.join(", ")}.`);
  for (const [name] of never) state[name] = blank(stage)[name];
  stage.write(true);
}

const ROUNDED = 0.01; // how far the sum of weights of four decimals is from 1 at most
const lackingIn = ({ client, model, against }, ids) => Object.entries({ client, model: clientOf(model), against }).filter(([, id]) => id !== null && !ids.includes(id)); // clients of the state that a round has not: [field, id]
const idsOf = (lacking) => [...new Set(lacking.map(([, id]) => id))].join(", ");
const clientOf = (model) => numberOf(/^client (\d+)$/.exec(model)?.[1]); // null for a model of no client

// Weights as an address has them: run, round, gamma, then a number for each client.
function mixOf(text, stage) {
  const [name, round, gamma, ...rest] = text.split(",").map(decoded), weights = {}, run = keyOf(stage, name), fits = (number) => number && Math.abs(Number(number)) <= LARGEST;
  for (const pair of rest) {
    const [id, value] = pair.split(":");
    if (numberOf(id) === null || Number(id) in weights || !fits(value)) return null;
    weights[Number(id)] = Number(value);
  }
  return run && numberOf(round) !== null && fits(gamma) && Number(gamma) && Math.abs(sumOf(Object.values(weights))) > LEAST_SUM ? { run, round: Number(round), gamma: Number(gamma), weights } : null;
}

function textOfMix({ run, round, gamma, weights }) {
  return [encodeURIComponent(run), round, written(gamma, 4), ...Object.entries(weights).map(([id, value]) => `${id}:${written(value, 4)}`)].join(",");
}

// What is as at the beginning of every page does not stand in it.
function addressOfState(state) {
  const parts = Object.entries(FIELDS).map(([name, [, , write = encodeURIComponent]]) => {
    const value = state[STATE[name] || name];
    return [name, value === null || value === PLAIN[name] ? "" : write(value, state)];
  });
  return `#${parts.filter(([, text]) => text !== "").map((part) => part.join("=")).join("&")}`;
}
