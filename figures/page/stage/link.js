// The link to a server: asks with answers, what it tells unasked, and what is said when it is lost.
//
// link.ask(kind, args, {onRough, onProgress}) returns a promise of the value with `cancel()`; a refusal is an Error whose
// message is one plain line. link.on(kind, callback) gets what is pushed: scene, jobs, problems, and "state", which is
// "open" or "lost". A promise that was open when the connection was lost fails; who needs it asks again at "open".

const STILL = 1500; // ms without a change until a notebook gets a picture
const WAITS = [0.5, 1, 2, 4, 8]; // seconds until the next try to connect

class Link {
  // `connect(receive, opened, lost)` begins a connection and returns {send}.
  constructor(connect) {
    Object.assign(this, { connect, number: 0, open: new Map(), listeners: new Map(), waiting: [], tries: 0, state: "new" });
    this.begin();
  }

  begin() { this.channel = this.connect((message) => this.receive(message), () => this.opened(), (why) => this.lost(why)); }

  opened() {
    this.tries = 0;
    this.state = "open";
    for (const message of this.waiting.splice(0)) this.channel.send(message);
    this.tell("state", "open");
  }

  lost(why) {
    for (const { reject } of this.open.values()) reject(new Error("The connection to fedscape was lost; it asks again once it is back."));
    this.open.clear();
    this.waiting = [];
    this.state = "lost";
    this.tell("state", "lost", why);
    setTimeout(() => this.begin(), 1000 * WAITS[Math.min(this.tries++, WAITS.length - 1)]);
  }

  send(message) { if (this.state === "open") this.channel.send(message); else this.waiting.push(message); }

  ask(kind, args = {}, { onProgress = null, onRough = null } = {}) {
    const id = ++this.number;
    const promise = new Promise((resolve, reject) => this.open.set(id, { resolve, reject, onProgress, onRough }));
    promise.cancel = () => {
      if (!this.open.delete(id)) return;
      this.waiting = this.waiting.filter((message) => message.id !== id);
      if (this.state === "open") this.channel.send({ id, cancel: true });
    };
    this.send({ id, ask: kind, args });
    return promise;
  }

  on(kind, callback) { this.listeners.set(kind, [...(this.listeners.get(kind) || []), callback]); }
  tell(kind, ...values) { for (const callback of this.listeners.get(kind) || []) callback(...values); }

  receive(message) {
    if (message.push) return this.tell(message.push, message.value);
    const one = this.open.get(message.id);
    if (!one) return undefined; // it was cancelled
    if ("progress" in message) return one.onProgress && one.onProgress(message.progress);
    if ("rough" in message) return one.onRough && one.onRough(message.rough);
    this.open.delete(message.id);
    return "error" in message ? one.reject(new Error(message.error)) : one.resolve(message.value);
  }
}

// A connection by websocket to the server that the page came from.
function webSocket(receive, opened, lost) {
  const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`);
  socket.onopen = opened;
  socket.onmessage = (event) => receive(JSON.parse(event.data));
  socket.onclose = () => lost();
  return { send: (message) => socket.send(JSON.stringify(message)) };
}

// Calls `send` with a PNG in base64 of what is on the stage whenever it has been still for a moment.
function takePictures(view, root, send) {
  let still, last = "";
  const take = async () => {
    if (!view.pictures.some((picture) => picture.shown.frame)) return;
    const png = (await canvasOf(view, 1)).toDataURL("image/png").split(",")[1];
    if (png !== last) send(last = png);
  };
  const wait = () => { clearTimeout(still); still = setTimeout(take, STILL); };
  new MutationObserver(wait).observe(root, { subtree: true, childList: true, attributes: true });
  wait();
}

// The page until the runs are open: their names and the accuracies that they recorded.
function opening(root, line, runs) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches, range = rangeOf(runs.flatMap((run) => run.accuracies)), most = Math.max(1, ...runs.map((run) => run.accuracies.length - 1)), any = Number.isFinite(range[0]);
  for (const run of runs) Object.assign(run, { shade: shadeOf(run.colour, dark), dash: [], curves: { accuracy: run.accuracies } });
  const card = (run) => make("li", { class: "card on" }, make("div", { class: "card-head" }, swatch(run), make("span", { class: "name" }, run.label)), sparkline(run, range), make("p", { class: "small" }, `${run.name} · ${run.done} of ${run.planned} rounds`));
  const curve = ({ accuracies, shade }) => shape("path", { d: pathOf(accuracies.map((value, i) => [(600 * i) / most, 197 - (194 * (value - range[0])) / (range[1] - range[0] || 1)])), fill: "none", stroke: shade, "stroke-width": 1.8, "vector-effect": "non-scaling-stroke" });
  const chart = any ? [make("p", { class: "small" }, `Test accuracy, ${range.map((value) => `${(100 * value).toFixed(0)} %`).join(" to ")}, of rounds 0 to ${most}`), shape("svg", { viewBox: "0 0 600 200", preserveAspectRatio: "none", role: "img", "aria-label": "Test accuracy of the runs over the rounds" }, ...runs.map(curve))] : [];
  line.textContent = `Opening ${runs.length} run${runs.length === 1 ? "" : "s"}${lastTime("opening")}. Then the first map is computed ...`;
  root.replaceChildren(make("nav", { class: "rail", "aria-label": "Runs" }, make("p", { class: "brand" }, "fedscape"), make("ul", {}, ...runs.map(card))), make("main", { class: "still" }, make("div", { class: "centre beginning" }, line, ...chart)));
}

// Begins the page: the scene, then the stage; a line where there is none, or where the connection is lost. The host of
// the page, if it has one, is a cell of a notebook (explore/widget.js) with a connection and an address of its own.
function begin(root, line, alert) {
  const begun = performance.now(), host = window.frameElement && window.frameElement.host, link = new Link(host ? host.connect : webSocket);
  if (host) link.address = host.address;
  else takeQuery(true); // without the token, which the cookie stands for now
  let view = null;
  const show = () => link.ask("scene", {}, { onRough: (runs) => { if (!view && runs.length) opening(root, line, runs); } }).then((scene) => {
    if (view) return;
    tookOf("opening", begun);
    if (scene.runs.length) { root.view = view = stage(root, scene, link); if (host) takePictures(view, root, host.picture); return; }
    line.textContent = scene.none_yet;
  }).catch((reason) => { line.textContent = reason.message; });
  link.on("state", (state, why) => {
    alert.hidden = state === "open";
    alert.textContent = state === "open" ? "" : why || "The connection to fedscape is lost: it has ended, or the network is down. This page tries again; what it shows stays. If fedscape was started anew, open the address that it printed.";
    if (state === "open" && !view) show();
  });
  link.on("scene", () => { if (!view) show(); });
  return link;
}
