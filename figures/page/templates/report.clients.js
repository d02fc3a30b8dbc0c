// A client that is picked stands out in every picture of single clients; the others fade.
const chooser = document.getElementById("client");
const pickedClient = () => (chooser && chooser.value !== "" ? Number(chooser.value) : null);
const FADED = { marker: { opacity: 0.15 } }, KEPT = { marker: { opacity: 1 } };

// Of a trace whose points are clients (its meta names the column of their numbers): the client of every point.
function clientsOf(trace) {
  const at = trace.meta && trace.meta.client;
  return at === undefined ? null : column(trace.customdata).map((row) => row[at]);
}

// Numbers of all clients that a picture of the page shows, in order.
function allClients() {
  const found = new Set();
  for (const figure of Object.values(figures)) {
    for (const trace of figure.data || []) {
      for (const one of clientsOf(trace) || (trace.type === "heatmap" ? column(trace.y).map(Number) : [])) found.add(one);
    }
  }
  return [...found].sort((a, b) => a - b);
}

// Marks the picked client in data that are about to be drawn: its points, or its row and column of a matrix.
function emphasise({ data, layout }) {
  const wanted = pickedClient();
  if (wanted === null) return;
  for (const trace of data) {
    const clients = clientsOf(trace);
    if (clients) {
      trace.selectedpoints = clients.flatMap((one, at) => (one === wanted ? [at] : []));
      Object.assign(trace, { unselected: FADED, selected: KEPT });
    }
    const place = trace.type === "heatmap" ? column(trace.y).map(Number).indexOf(wanted) : -1;
    if (place < 0) continue;
    const [low, high, end] = [place - 0.5, place + 0.5, trace.y.length - 0.5];
    const frame = { type: "rect", line: { color: ground().text, width: 2 } };
    layout.shapes = [{ ...frame, x0: -0.5, x1: end, y0: low, y1: high }, { ...frame, x0: low, x1: high, y0: -0.5, y1: end }];
  }
}

// The client that a point of a drawn picture is of, or null.
function clientAt({ data, pointNumber, y }) {
  const clients = clientsOf(data);
  if (clients) return clients[pointNumber];
  return data.type === "heatmap" ? Number(y) : null;
}

// A click picks the client, a second one lets it go.
function pickClient(one) {
  if (one === null || !chooser) return;
  chooser.value = one === pickedClient() ? "" : String(one);
  chooser.dispatchEvent(new Event("change"));
}

// Offers the clients; a change draws again what shows single clients.
function offerClients() {
  if (!chooser) return;
  for (const one of allClients()) chooser.add(new Option(String(one), String(one)));
  chooser.addEventListener("change", () => {
    renew((plot) => ((figureOf(plot) || {}).data || []).some((trace) => clientsOf(trace) || trace.type === "heatmap"));
  });
}
