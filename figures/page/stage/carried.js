// What a file answers from the models that it carries (network.js), in the words and numbers of a server (explore/answers).

const ON_PLANE = 1e-6; // as figures.page.carried_models has it
const LIVE = "fedscape explore shows it live.";

// A model of a round by its name, as a sum of carried vectors; null where the file has it not.
function carriedModel(frame, name) {
  const mark = frame.marks.find((one) => one.name === name), { carried, weights } = frame;
  if (!mark || !carried) return null;
  if (carried[name] || mark.away <= 1.001 * ON_PLANE * Math.hypot(mark.u, mark.v, mark.away)) return { middle: 1, u: mark.u, v: mark.v, ...(carried[name] ? { [name]: 1 } : {}) };
  return name === "aggregate" && weights ? carriedMixture(frame, weights.size) : null;
}

// The clients of a round at weights that are scaled to sum 1, times gamma; null where one of them is not carried.
function carriedMixture(frame, { weights, gamma = 1 }) {
  const some = Object.entries(weights).filter(([, weight]) => weight), total = sumOf(some.map(([, weight]) => weight)), sum = {};
  if (!(Math.abs(total) > 1e-12)) return null;
  for (const [id, weight] of some) {
    const model = carriedModel(frame, `client ${id}`);
    if (!model) return null;
    for (const [name, factor] of Object.entries(model)) sum[name] = (sum[name] || 0) + ((gamma * weight) / total) * factor;
  }
  return sum;
}

// Whether all clients of a round are carried, so that any weights can be evaluated.
const carriesAll = (frame) => Boolean(frame && frame.weights && frame.cohort.every(({ id }) => carriedModel(frame, `client ${id}`)));

// Weights of the three clients of the plane alone, of sum 1: their place on it; null for others.
function spotOf(frame, { weights, gamma = 1 }) {
  const some = Object.entries(weights).filter(([, weight]) => weight), total = sumOf(some.map(([, weight]) => weight)), three = frame.through.map(String);
  if (gamma !== 1 || !(Math.abs(total) > 1e-12) || some.some(([id]) => !three.includes(id))) return null;
  return ["u", "v"].map((axis) => sumOf(some.map(([id, weight]) => (weight / total) * frame.marks.find(({ name }) => name === `client ${id}`)[axis])));
}

// Whether weights are the best ones, as an address has them.
function isBest(frame, { weights, gamma = 1 }) {
  const { best } = frame.weights || {}, sum = sumOf(Object.values(weights));
  return Boolean(best) && Math.abs(gamma - best.gamma) < 1e-4 && Object.entries(best.weights).every(([id, weight]) => Math.abs((weights[id] ?? 0) / sum - weight) < 1e-4);
}

// Whether the file has a number of weights: evaluated, interpolated on the plane, or stored.
const canWeigh = (frame, mix) => Boolean(frame && frame.weights && (carriedMixture(frame, mix) || spotOf(frame, mix) || isBest(frame, mix)));

// The weights of a rule.
function ruleOf(frame, rule) {
  const { own, size, best } = frame.weights, ids = Object.keys(size.weights), without = /^without (\d+)$/.exec(rule)?.[1];
  if (rule === "own") return { ...own, words: "The weights that the round took." };
  if (rule === "best" && best) return best;
  if (rule === "equal") return { gamma: 1, weights: Object.fromEntries(ids.map((id) => [id, size.weights[id] > 0 ? 1 / ids.filter((one) => size.weights[one] > 0).length : 0])), words: "Equal weights of the clients with samples." };
  const rest = without && sumOf(ids.map((id) => (id === without ? 0 : size.weights[id])));
  if (!rest) throw new Error(`This file has no such weights. ${LIVE}`);
  return { gamma: 1, weights: Object.fromEntries(ids.map((id) => [id, id === without ? 0 : size.weights[id] / rest])), words: `FedAvg's weights of the other clients, without client ${without}.` };
}

function carriedAnswer(networks, kind, args) {
  const { stage } = networks, run = stage.runs.find((one) => stage.memberOf(one) === args.run), frame = run.shown[args.round], samples = run.network && stage.scene.samples[run.network.samples];
  const failed = (words) => Promise.reject(new Error(words));
  try {
    if (kind === "samples") return carriedSamples(networks, run, args, samples);
    const mix = kind === "best" ? ruleOf(frame, args.rule) : args, sum = kind === "point" ? { middle: 1, u: args.spot[0], v: args.spot[1] } : carriedMixture(frame, mix);
    const about = kind === "point" ? {} : { weights: mix.weights, gamma: mix.gamma, words: mix.words };
    if (!sum) return Promise.resolve({ ...aside(stage, frame, mix), ...about });
    const inner = networks.evaluate(run, args.round, sum), answer = inner.then((value) => ({ ...meansOver(value, samples.targets), ...about }));
    answer.cancel = inner.cancel;
    return answer;
  } catch (reason) { return failed(reason.message); }
}

// Weights whose models are not carried: what is stored, or interpolated on the plane.
function aside(stage, frame, mix) {
  const at = spotOf(frame, mix), value = (metric) => { const surface = stage.land.surfaceIn(frame, metric); return surface && surface.inside(...at) ? surface.value(...at) : null; };
  if (isBest(frame, mix)) return { loss: frame.weights.best.loss, error: null, parts: null };
  if (!at) throw new Error(`This file has not the models of these clients. ${LIVE}`);
  return { loss: value("loss"), error: value("error"), parts: null, mark: { u: at[0], v: at[1], away: 0 }, interpolated: true };
}

// Means over the samples, as a server has them.
function meansOver({ losses, predicted, classes, mark }, targets) {
  const seen = new Array(classes).fill(0), wrong = new Array(classes).fill(0), mean = meanOf([...losses]), floats = Float32Array.from(losses);
  targets.forEach((target, i) => { seen[target] += 1; wrong[target] += predicted[i] !== target; });
  return { loss: Number.isFinite(mean) ? mean : null, error: sumOf(wrong) / targets.length, class_error: seen.map((count, i) => (count ? wrong[i] / count : null)), samples: targets.length, statistics: "", mark,
    parts: btoa(String.fromCharCode(...new Uint8Array(floats.buffer))) };
}

// Samples with what models predict for them, those of the largest loss first, and the confusion matrix.
async function carriedSamples(networks, run, { round, model, against, truth, predicted, mode, limit }, samples) {
  const frame = run.shown[round], { targets, numbers } = samples, of = (what) => (typeof what === "string" ? carriedModel(frame, what) : what.spot ? { middle: 1, u: what.spot[0], v: what.spot[1] } : carriedMixture(frame, what));
  const sums = [model, ...(against === null ? [] : [`client ${against}`])].map(of);
  if (sums.includes(null)) throw new Error(`This file has not this model. ${LIVE}`);
  const [first, other] = await Promise.all(sums.map((sum) => networks.evaluate(run, round, sum))), known = networks.stage.scene.classes, rank = (i) => (Number.isNaN(first.losses[i]) ? Infinity : first.losses[i]);
  const size = Math.max(known.length, first.classes), classes = Array.from({ length: size }, (_, i) => String(known[i] ?? i)), confusion = classes.map(() => new Array(size).fill(0));
  targets.forEach((target, i) => { confusion[target][first.predicted[i]] += 1; });
  const fits = (i) => (truth === null || targets[i] === truth) && (predicted === null || first.predicted[i] === predicted) && (mode === "differs" ? first.predicted[i] !== other.predicted[i] : mode !== "wrong" || predicted !== null || first.predicted[i] !== targets[i]);
  const rows = targets.map((_, i) => i).filter(fits).sort((a, b) => rank(b) - rank(a)), pictured = await picturesOf(samples, rows.slice(0, limit));
  const cards = rows.slice(0, limit).map((i, at) => ({ number: numbers[i], truth: targets[i], predicted: first.predicted[i], against: other ? other.predicted[i] : null, loss: first.losses[i], ...pictured[at] }));
  const name = typeof model === "string" ? model : model.spot ? "a point of the plane" : "these weights";
  const phrases = [truth !== null && `class ${classes[truth]}`, predicted !== null && `predicted as ${classes[predicted]}`, mode === "differs" ? `predicted otherwise by client ${against}` : predicted === null && { wrong: "wrong ones", all: "all" }[mode]].filter(Boolean);
  return { cards, confusion, classes, total: rows.length, words: `${phrases.join(", ")}, of the ${targets.length} that this file carries, largest loss first; model: ${name}` };
}

// Small pictures of some samples, or their first inputs.
async function picturesOf({ shape: [channels, height, width], pixels, bytes, tables, values, targets }, rows) {
  if (!pixels) {
    const inputs = tables ? null : floatsOf(values), size = inputs && inputs.length / targets.length;
    return rows.map((i) => ({ numbers: inputs ? [...inputs.slice(i * size, i * size + 8)] : [] }));
  }
  const places = await unzipped(bytes), area = height * width;
  return rows.map((i) => {
    const canvas = make("canvas", { width, height }), ink = canvas.getContext("2d"), image = ink.createImageData(width, height);
    for (let at = 0; at < area; at++) for (let part = 0; part < 4; part++) image.data[4 * at + part] = part === 3 ? 255 : pixels[part % channels][places[(i * channels + (part % channels)) * area + at]];
    ink.putImageData(image, 0, 0);
    return { picture: canvas.toDataURL("image/png") };
  });
}
