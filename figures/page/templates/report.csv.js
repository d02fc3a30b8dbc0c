// The numbers of a figure as CSV: one row per point, of all rounds.
const TYPES = { f8: Float64Array, f4: Float32Array, i4: Int32Array, u4: Uint32Array, i2: Int16Array, u2: Uint16Array, i1: Int8Array, u1: Uint8Array };

// A column of a trace: a list, or bytes in base64 with their type, as plotly writes arrays.
function column(values) {
  if (values === undefined || values === null) return [];
  if (!values.bdata) return Array.from(values);
  const bytes = Uint8Array.from(atob(values.bdata), (sign) => sign.charCodeAt(0));
  const flat = Array.from(new TYPES[values.dtype](bytes.buffer));
  if (!values.shape) return flat;
  const [rows, columns] = String(values.shape).split(",").map(Number);
  return Array.from({ length: rows }, (_, row) => flat.slice(row * columns, (row + 1) * columns));
}

// The numbers of a surface are those of its grid, which it carries beside the finer one that is drawn.
function rowsOf(trace, round) {
  if (trace.hoverinfo === "skip" && trace.type !== "scatter") return [];
  const numbers = trace.meta && trace.meta.z ? trace.meta : trace;
  const [x, y, z] = [column(numbers.x || numbers.a), column(numbers.y || numbers.b), column(numbers.z)];
  const start = [round, trace.name || ""];
  if (Array.isArray(z[0])) return z.flatMap((line, row) => line.map((value, at) => [...start, x[at], y[row], value]));
  const length = Math.max(x.length, y.length, z.length);
  return Array.from({ length }, (_, at) => [...start, x[at], y[at], z[at]]);
}

function csv(figure) {
  const named = (axis) => (((figure.layout.scene || figure.layout)[`${axis}axis`] || {}).title || {}).text || axis;
  const traces = figure.frames
    ? figure.frames.flatMap((frame, place) => frame.data.flatMap((trace, at) => rowsOf({ ...figure.data[frame.traces[at]], ...trace }, figure.rounds[place])))
    : figure.data.flatMap((trace) => rowsOf(trace, ""));
  const isFormula = (value) => typeof value === "string" && /^[=+\-@\t\r\n]/.test(value) && Number.isNaN(Number(value));
  const safe = (value) => (isFormula(value) ? `'${value}` : value);
  const quoted = (value) => (/[",\n]/.test(value ?? "") ? `"${String(value).replaceAll('"', '""')}"` : value ?? "");
  const plain = (text) => text.replace(/<[^>]*>/g, " ").trim();
  const head = ["round", "trace", ...["x", "y", "z"].map((axis) => plain(named(axis)))];
  return [head, ...traces].map((row) => row.map(safe).map(quoted).join(",")).join("\n") + "\n";
}
