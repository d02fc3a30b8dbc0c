// Exact numbers in a file: a plain network of a carried round is evaluated on its samples in a thread of the browser.
//
// ask(kind, args) answers "point" as a server does (link.js); figures.page.carried_models makes what is read here.

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

  async function answer({ id, network, of, layers, spot: [a, b] }) {
    const { middle, u, v } = networks.get(network), { inputs, targets, shape } = samples.get(of), size = inputs.length / targets.length;
    const theta = Float32Array.from(middle, (value, i) => value + a * u[i] + b * v[i]), wrong = new Map(), seen = new Map();
    let loss = 0, classes = 0;
    for (let n = 0; n < targets.length; n++) {
      if (n % BLOCK === 0) { await new Promise((go) => setTimeout(go)); if (dropped.delete(id)) return; }
      const logits = outputs(layers, theta, inputs.subarray(n * size, (n + 1) * size), shape), target = targets[n];
      let high = -Infinity, best = 0, sum = 0;
      logits.forEach((value, i) => { if (value > high) { high = value; best = i; } });
      logits.forEach((value) => { sum += Math.exp(value - high); });
      loss += high + Math.log(sum) - logits[target];
      classes = logits.length;
      seen.set(target, (seen.get(target) || 0) + 1);
      wrong.set(target, (wrong.get(target) || 0) + (best !== target));
    }
    const errors = Array.from({ length: classes }, (_, i) => (seen.has(i) ? wrong.get(i) / seen.get(i) : null)), mean = loss / targets.length;
    postMessage({ id, value: { loss: Number.isFinite(mean) ? mean : null, error: [...wrong.values()].reduce((x, y) => x + y, 0) / targets.length, class_error: errors, samples: targets.length, statistics: "" } });
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
  constructor(stage) { Object.assign(this, { stage, sent: new Map(), open: new Map(), number: 0 }); }

  // Whether a round of a run can be evaluated here.
  has(run, round) { return Boolean(run.network && run.shown[round] && run.shown[round].carried); }

  // Why a number of a round is interpolated, and which rounds are exact.
  why(run) {
    const rounds = this.stage.land.rounds(run).filter((round) => this.has(run, round));
    return rounds.length ? `this file carries the models of round ${rounds.join(", ")}` : run.interpolated || "this file would become too large with its models";
  }

  ask(kind, { run: name, round, spot }) {
    const run = this.stage.runs.find((one) => this.stage.memberOf(one) === name), of = run.network.samples, network = `${name} ${round}`;
    this.worker ||= this.begin();
    const once = (key, what) => { if (!this.sent.has(key)) this.sent.set(key, what().then((message) => this.worker.postMessage(message))); return this.sent.get(key); };
    const ready = Promise.all([once(`samples ${of}`, async () => ({ of, ...await samplesOf(this.stage.scene.samples[of]) })), once(network, async () => ({ network, vectors: await vectorsOf(run.shown[round].carried) }))]);
    const id = ++this.number, promise = new Promise((resolve, reject) => { this.open.set(id, { resolve, reject }); ready.catch(reject); });
    promise.cancel = () => { if (this.open.delete(id)) this.worker.postMessage({ cancel: id }); };
    ready.then(() => { if (this.open.has(id)) this.worker.postMessage({ id, network, of, layers: run.network.layers, spot }); }, () => null);
    return promise;
  }

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

const vectorsOf = async (carried) => Object.fromEntries(await Promise.all(["middle", "u", "v"].map(async (name) => [name, await numbersOf(carried[name])])));

// Whole numbers of so many bytes, the lowest bytes of all first and the sign in the lowest bit, times their unit, as float64.
async function numbersOf({ zipped, bytes: size, step }) {
  const bytes = await unzipped(zipped), n = bytes.length / size;
  return Float64Array.from({ length: n }, (_, i) => {
    let bits = 0;
    for (let byte = 0; byte < size; byte++) bits += bytes[byte * n + i] * 256 ** byte;
    return (bits % 2 ? -(bits + 1) / 2 : bits / 2) * step;
  });
}
