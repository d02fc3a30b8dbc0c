// Grids of numbers: unpacking, interpolation between their points, differences, level lines. Nothing here draws.

// Bytes in base64, and little-endian float32 in base64.
const bytesOf = (text) => Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
const floatsOf = (text) => new Float32Array(bytesOf(text).buffer);

const sumOf = (values) => values.reduce((a, b) => a + b, 0);
const meanOf = (values) => sumOf(values) / values.length; // NaN of none
const rangeOf = (values) => [values.reduce((a, b) => Math.min(a, b), Infinity), values.reduce((a, b) => Math.max(a, b), -Infinity)];

const FINE = 121; // points per axis of a grid that is drawn

// Slopes of a monotone cubic (PCHIP, as scipy has it) through n evenly spaced values, in units of their spacing.
function slopes(values) {
  const n = values.length, rise = Array.from({ length: n - 1 }, (_, i) => values[i + 1] - values[i]);
  if (n === 2) return [rise[0], rise[0]];
  const edge = (first, second) => {
    const slope = 1.5 * first - 0.5 * second;
    if (Math.sign(slope) !== Math.sign(first)) return 0;
    return Math.sign(first) !== Math.sign(second) && Math.abs(slope) > 3 * Math.abs(first) ? 3 * first : slope;
  };
  const inner = (before, after) => (before * after > 0 ? 2 / (1 / before + 1 / after) : 0);
  const middle = Array.from({ length: n - 2 }, (_, i) => inner(rise[i], rise[i + 1]));
  return [edge(rise[0], rise[1]), ...middle, edge(rise[n - 2], rise[n - 3])];
}

// The cubic at a place in units of the spacing, 0 to n - 1.
function cubic(values, slope, place) {
  const i = Math.min(Math.max(Math.floor(place), 0), values.length - 2), t = place - i;
  const s = t * t * (3 - 2 * t), in0 = t * (1 - t) * (1 - t), in1 = t * t * (t - 1);
  return values[i] * (1 - s) + values[i + 1] * s + slope[i] * in0 + slope[i + 1] * in1;
}

// A rectangle of distances u and v with a height at each point.
class Plane {
  inside(u, v) { return [[u, this.u], [v, this.v]].every(([at, [low, high]]) => at >= low - 1e-9 && at <= high + 1e-9); }
  get empty() { return !Number.isFinite(this.low); }
  value(u, v) { return this.log ? 10 ** this.height(u, v) : this.height(u, v); } // heights may be decimal logarithms
}

// A plane of one round and run: losses over distances u and v from the mean of three clients.
class Surface extends Plane {
  // plane: as `figures.page.stage_round` makes it; a positive loss is interpolated as its decimal logarithm.
  constructor(plane, metric) {
    super();
    const values = floatsOf(plane.metrics[metric]);
    [this.rows, this.columns] = plane.points;
    [this.u, this.v] = plane.extent;
    this.log = metric === "loss" && values.every((value) => !Number.isFinite(value) || value > 0);
    this.heights = Float64Array.from(values, (value) => (this.log ? Math.log10(value) : value));
    const known = this.heights.filter(Number.isFinite);
    [this.low, this.high] = rangeOf(known);
    this.filled = this.heights.map((value) => (Number.isFinite(value) ? value : this.high));
    this.lines = Array.from({ length: this.columns }, (_, b) => {
      const line = Array.from({ length: this.rows }, (_, a) => this.filled[a * this.columns + b]);
      return { line, slope: slopes(line) };
    });
  }

  place(value, [low, high], count) { return ((value - low) / (high - low)) * (count - 1); }

  // The evaluated points: u, v and the metric of each.
  points() {
    const at = ([low, high], i, count) => low + (i / (count - 1)) * (high - low);
    return [...this.heights].map((height, i) => [at(this.u, Math.floor(i / this.columns), this.rows), at(this.v, i % this.columns, this.columns), this.log ? 10 ** height : height]);
  }

  // Height at a point: interpolated; NaN outside the grid and beside a value that is not finite.
  height(u, v) {
    if (this.empty || !this.inside(u, v)) return NaN;
    const [a, b] = [this.place(u, this.u, this.rows), this.place(v, this.v, this.columns)];
    if (!this.known(a, b)) return NaN;
    const across = this.lines.map(({ line, slope }) => cubic(line, slope, a));
    return cubic(across, slopes(across), b);
  }

  // Whether the four values around a place are finite.
  known(a, b) {
    const [row, column] = [Math.min(Math.floor(a), this.rows - 2), Math.min(Math.floor(b), this.columns - 2)];
    return [0, 1].every((i) => [0, 1].every((j) => Number.isFinite(this.heights[(row + i) * this.columns + column + j])));
  }

  // Heights on a fine grid over the whole plane, index [v][u]; computed once.
  get fine() {
    if (this.drawn) return this.drawn;
    this.drawn = new Float32Array(FINE * FINE).fill(NaN);
    if (this.empty) return this.drawn;
    for (let x = 0; x < FINE; x++) {
      const a = (x / (FINE - 1)) * (this.rows - 1), across = this.lines.map(({ line, slope }) => cubic(line, slope, a));
      const slope = slopes(across);
      for (let y = 0; y < FINE; y++) {
        const b = (y / (FINE - 1)) * (this.columns - 1);
        if (this.known(a, b)) this.drawn[y * FINE + x] = cubic(across, slope, b);
      }
    }
    return this.drawn;
  }
}

// The rectangle around some models of which no loss is known.
class Blank extends Plane {
  constructor(marks) {
    super();
    Object.assign(this, { low: Infinity, high: -Infinity, fine: new Float32Array(FINE * FINE).fill(NaN) });
    const ends = ["u", "v"].map((axis) => marks.map((mark) => mark[axis])).map((places) => [Math.min(...places), Math.max(...places)]);
    const margin = 0.15 * Math.max(...ends.map(([low, high]) => high - low)) || 1;
    [this.u, this.v] = ends.map(([low, high]) => [low - margin, high + margin]);
  }

  get empty() { return false; }
  height() { return NaN; }
  points() { return []; }
}

// A minus B at the same distances from the means of their clients, where both are known; has the shape of a Surface.
class Difference extends Plane {
  constructor(a, b) {
    super();
    Object.assign(this, { a, b, log: false });
    [this.u, this.v] = ["u", "v"].map((axis) => [Math.max(a[axis][0], b[axis][0]), Math.min(a[axis][1], b[axis][1])]);
    const known = this.fine.filter(Number.isFinite).map(Math.abs).sort();
    this.high = known.length ? known[Math.floor(0.98 * (known.length - 1))] : NaN; // a few steep corners do not set the scale
    this.low = -this.high;
  }

  height(u, v) { return this.a.value(u, v) - this.b.value(u, v); }

  get fine() {
    if (this.drawn) return this.drawn;
    const at = ([low, high], i) => low + (i / (FINE - 1)) * (high - low);
    this.drawn = new Float32Array(FINE * FINE);
    for (let y = 0; y < FINE; y++) for (let x = 0; x < FINE; x++) this.drawn[y * FINE + x] = this.height(at(this.u, x), at(this.v, y));
    return this.drawn;
  }
}

// Between two surfaces of one run: what is drawn while the round changes.
class Between extends Plane {
  constructor(from, to, share) {
    super();
    Object.assign(this, { from, to, share, log: to.log });
    for (const axis of ["u", "v"]) this[axis] = to[axis].map((end, i) => from[axis][i] + share * (end - from[axis][i]));
    this.fine = from.fine.map((value, i) => value + share * (to.fine[i] - value));
  }

  height(u, v) {
    const moved = (surface) => ["u", "v"].map((axis, i) => surface[axis][0] + (([u, v][i] - this[axis][0]) / (this[axis][1] - this[axis][0])) * (surface[axis][1] - surface[axis][0]));
    return (1 - this.share) * this.from.height(...moved(this.from)) + this.share * this.to.height(...moved(this.to));
  }
}

// Evenly spaced levels; those of a difference have one at zero.
function levelsOf(low, high, count) {
  return Array.from({ length: count }, (_, i) => low + ((i + 0.5) / count) * (high - low));
}

// Line pieces of one level on a fine grid, in units of its cells: x0, y0, x1, y1 of each (marching squares).
function levelLine(fine, level) {
  const pieces = [];
  for (let y = 0; y < FINE - 1; y++) {
    for (let x = 0; x < FINE - 1; x++) {
      const i = y * FINE + x, [a, b, c, d] = [fine[i], fine[i + 1], fine[i + FINE + 1], fine[i + FINE]];
      const number = (a > level) + (b > level) + (c > level) + (d > level);
      if (number === 0 || number === 4 || Number.isNaN(a + b + c + d)) continue;
      const corners = [a, b, c, d], above = corners.map((value) => value > level);
      const share = (a, b) => (level - corners[a]) / (corners[b] - corners[a]);
      const sides = [[x + share(0, 1), y], [x + 1, y + share(1, 2)], [x + share(3, 2), y + 1], [x, y + share(0, 3)]];
      const cut = [above[0] !== above[1], above[1] !== above[2], above[2] !== above[3], above[3] !== above[0]];
      const ends = sides.filter((_, side) => cut[side]);
      for (let pair = 0; pair + 1 < ends.length; pair += 2) pieces.push(...ends[pair], ...ends[pair + 1]);
    }
  }
  return pieces;
}

// Standard error of a mean, of values on parts of equal size.
function errorOf(values) {
  const known = values.filter(Number.isFinite), n = known.length, mean = meanOf(known);
  return n > 1 ? Math.sqrt(sumOf(known.map((value) => (value - mean) ** 2)) / (n - 1) / n) : NaN;
}

// Standard error of the difference of two losses on parts of the same samples: {end}.
function errorBetween(a, b) {
  const [x, y] = [a, b].map((one) => [...floatsOf(one.end)]);
  return errorOf(x.map((value, i) => value - y[i]));
}

// Whether the interval of a difference does not hold zero, in a sentence about the largest of so many.
const clear = (difference, error, among = 1) => Math.abs(difference) > [1.96, 2.24, 2.4][among - 1] * error;
const withError = (difference, error, unit = "") => `${signed(difference)} ± ${Number.isFinite(error) ? written(error, 2) : "?"}${unit}`;

const DIGITS = 4; // of the value at a point, below a picture and in its card

// A number in a few digits, as the page writes it.
function written(value, digits = 3) {
  if (value === null || !Number.isFinite(value)) return "not finite";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e5 || size < 1e-3)) return value.toExponential(Math.max(digits - 2, 1));
  return String(Number(value.toPrecision(digits)));
}
const signed = (value, digits) => (value > 0 ? "+" : "") + written(value, digits).replaceAll("-", "−");

// Numbers that are compared: all with as many decimals as one of them needs.
function alike(values, digits = 3) {
  const texts = values.map((value) => written(value, digits)), decimals = Math.max(...texts.map((text) => (text.split(".")[1] || "").length));
  return texts.some((text) => /[a-z]/.test(text)) ? texts : values.map((value) => value.toFixed(decimals));
}
