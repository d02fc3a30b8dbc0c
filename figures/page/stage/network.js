// Exact numbers in a file: a plain network of a carried round is evaluated on its samples in a thread of the browser.
//
// evaluate(run, round, sum) gives loss and prediction of each sample at a sum of the carried vectors, {name: factor};
// figures.page.carried_models makes what is read here, and carried.js answers with it what a server does.

// What the thread does. It is sent as text, so it uses nothing from outside.
function evaluator() {
  const networks = new Map(), samples = new Map();
  const dropped = new Set(), BLOCK = 50; // questions that nobody waits for, and samples between two looks at them

  // Layers: (input, its shape, numbers of the layer) -> [output, its shape]. Sums are in float64.
  const LAYERS = {
    linear({ out, bias }, input, [length], take) {
      const weights = take(out * length), shift = bias ? take(out) : null, output = new Float32Array(out);
      for (let o = 0, at = 0; o < out; o++) {
        let sum = shift ? shift[o] : 0;
        for (let i = 0; i < length; i++, at++) sum += weights[at] * input[i];
        output[o] = sum;
      }
      return [output, [out]];
    },
    conv({ out, kernel: [tall, wide], stride: [down, right], padding: [top, left], bias }, input, [channels, height, width], take) {
      const rows = Math.floor((height + 2 * top - tall) / down) + 1, columns = Math.floor((width + 2 * left - wide) / right) + 1, size = rows * columns;
      const weights = take(out * channels * tall * wide), shift = bias ? take(out) : null, output = new Float32Array(out * size), sums = new Float64Array(size);
      for (let o = 0, at = 0; o < out; o++) {
        sums.fill(shift ? shift[o] : 0);
        for (let c = 0; c < channels; c++) for (let y = 0; y < tall; y++) for (let x = 0; x < wide; x++, at++) {
          const weight = weights[at], first = Math.max(0, Math.ceil((left - x) / right)), last = Math.min(columns - 1, Math.floor((width - 1 + left - x) / right));
          for (let row = 0; row < rows; row++) {
            const from = row * down + y - top;
            if (from < 0 || from >= height) continue;
            const line = (c * height + from) * width + x - left, to = row * columns;
            for (let column = first; column <= last; column++) sums[to + column] += weight * input[line + column * right];
          }
        }
        output.set(sums, o * size);
      }
      return [output, [out, rows, columns]];
    },
    pool({ kind, kernel: [tall, wide], stride: [down, right] }, input, [channels, height, width]) {
      const rows = Math.floor((height - tall) / down) + 1, columns = Math.floor((width - wide) / right) + 1, output = new Float32Array(channels * rows * columns);
      for (let c = 0, to = 0; c < channels; c++) for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++, to++) {
        let best = -Infinity, sum = 0;
        for (let y = 0; y < tall; y++) for (let x = 0; x < wide; x++) { const value = input[(c * height + row * down + y) * width + column * right + x]; best = Math.max(best, value); sum += value; }
        output[to] = kind === "max" ? best : sum / (tall * wide);
      }
      return [output, [channels, rows, columns]];
    },
    relu(layer, input, shape) { return [input.map((value) => (value < 0 ? 0 : value)), shape]; },
    flatten(layer, input) { return [input, [input.length]]; },
    same(layer, input, shape) { return [input, shape]; },
  };
  LAYERS.max = LAYERS.mean = LAYERS.pool;

  function outputs(layers, theta, input, shape) {
    let at = 0;
    const take = (number) => theta.subarray(at, at += number);
    for (const layer of layers) [input, shape] = LAYERS[layer.kind](layer, input, shape, take);
    return input;
  }

  async function answer({ id, network, of, layers, sum: parts }) {
    const vectors = networks.get(network), { inputs, targets, shape } = samples.get(of), number = targets.length, size = inputs.length / number;
    const exact = new Float64Array(vectors.middle.length), losses = new Float64Array(number), predicted = new Int32Array(number);
    for (const [name, factor] of Object.entries(parts)) vectors[name].forEach((value, i) => { exact[i] += factor * value; });
    const theta = Float32Array.from(exact);
    let classes = 0;
    for (let n = 0; n < number; n++) {
      if (n % BLOCK === 0) { await new Promise((go) => setTimeout(go)); if (dropped.delete(id)) return; }
      const logits = outputs(layers, theta, inputs.subarray(n * size, (n + 1) * size), shape);
      let high = -Infinity, sum = 0;
      logits.forEach((value, i) => { if (value > high) { high = value; predicted[n] = i; } });
      logits.forEach((value) => { sum += Math.exp(value - high); });
      losses[n] = high + Math.log(sum) - logits[targets[n]];
      classes = logits.length;
    }
    let square = 0, u = 0, v = 0; // of the way from the middle: its length, and its parts along u and v
    exact.forEach((value, i) => { const step = value - vectors.middle[i]; square += step * step; u += step * vectors.u[i]; v += step * vectors.v[i]; });
    postMessage({ id, value: { losses, predicted, classes, mark: { u, v, away: Math.sqrt(Math.max(square - u * u - v * v, 0)) } } });
  }

  let turn = Promise.resolve();
  onmessage = ({ data }) => {
    if (data.vectors) networks.set(data.network, data.vectors);
    else if (data.inputs) samples.set(data.of, data);
    else if (data.cancel) dropped.add(data.cancel);
    else turn = turn.then(() => answer(data));
  };
}

class Networks {
  constructor(stage) { Object.assign(this, { stage, sent: new Map(), open: new Map(), known: new Map(), number: 0 }); }

  // Whether a round of a run can be evaluated here.
  has(run, round) { return Boolean(run.network && run.shown[round] && run.shown[round].carried); }

  // Why a number of a round is interpolated, and which rounds are exact.
  why(run) {
    const rounds = this.stage.land.rounds(run).filter((round) => this.has(run, round));
    return rounds.length ? `this file carries the models of ${inRounds(rounds)}` : run.interpolated || "this file would become too large with its models";
  }

  // Loss and prediction of each sample, and the place of the model; the promise has cancel().
  evaluate(run, round, sum) {
    const of = run.network.samples, network = `${run.key} ${round}`, known = JSON.stringify([network, sum]);
    if (this.known.has(known)) return Promise.resolve(this.known.get(known));
    this.worker ||= this.begin();
    const once = (key, what) => { if (!this.sent.has(key)) this.sent.set(key, what().then((message) => this.worker.postMessage(message))); return this.sent.get(key); };
    const ready = Promise.all([once(`samples ${of}`, async () => ({ of, ...await samplesOf(this.stage.scene.samples[of]) })), once(network, async () => ({ network, vectors: await vectorsOf(run.shown[round].carried) }))]);
    const id = ++this.number, promise = new Promise((resolve, reject) => { this.open.set(id, { resolve: (value) => { this.remember(known, value); resolve(value); }, reject }); ready.catch(reject); });
    promise.cancel = () => { if (this.open.delete(id)) this.worker.postMessage({ cancel: id }); };
    ready.then(() => { if (this.open.has(id)) this.worker.postMessage({ id, network, of, layers: run.network.layers, sum }); }, () => null);
    return promise;
  }

  remember(key, value) { this.known.set(key, value); if (this.known.size > 12) this.known.delete(this.known.keys().next().value); }

  ask(kind, args) { return carriedAnswer(this, kind, args); }

  begin() {
    const worker = new Worker(URL.createObjectURL(new Blob([`(${evaluator})()`], { type: "text/javascript" })));
    worker.onmessage = ({ data: { id, value } }) => { const one = this.open.get(id); this.open.delete(id); if (one) one.resolve(value); };
    worker.onerror = () => { for (const { reject } of this.open.values()) reject(new Error("This browser cannot evaluate the model; the number is interpolated.")); this.open.clear(); };
    return worker;
  }
}

const unzipped = async (text) => new Uint8Array(await new Response(new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());

// Inputs as float32, from bytes and a table for each channel, or as they are.
async function samplesOf({ shape, targets, tables, bytes, values }) {
  if (!tables) return { shape, targets, inputs: floatsOf(values) };
  const known = tables.map(floatsOf), size = shape.slice(1).reduce((a, b) => a * b, 1);
  return { shape, targets, inputs: Float32Array.from(await unzipped(bytes), (place, i) => known[Math.floor(i / size) % known.length][place]) };
}

const vectorsOf = async (carried) => Object.fromEntries(await Promise.all(Object.entries(carried).map(async ([name, vector]) => [name, await numbersOf(vector)])));

// Whole numbers of so many bytes, the lowest bytes of all first and the sign in the lowest bit, times their unit, as float64.
async function numbersOf({ zipped, bytes: size, step }) {
  const bytes = await unzipped(zipped), n = bytes.length / size;
  return Float64Array.from({ length: n }, (_, i) => {
    let bits = 0;
    for (let byte = 0; byte < size; byte++) bits += bytes[byte * n + i] * 256 ** byte;
    return (bits % 2 ? -(bits + 1) / 2 : bits / 2) * step;
  });
}
