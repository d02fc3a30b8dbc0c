// A slider per client and one for gamma. Weights sum to 1: moving one scales the others. The next move is sent when the
// one before was answered, so that a slow answer never makes a queue.
const shown = (value) => (Math.abs(value) < 5e-4 ? "0" : value.toFixed(3));

export function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "sliders";
  root.setAttribute("role", "group");
  let rows = [], gamma = null, waiting = false, next = null;

  function report(content) {
    if (waiting) { next = content; return; }
    waiting = true;
    model.send_msg(content);
  }
  model.on("msg:custom", ({ ack }) => {
    if (!ack) return;
    waiting = false;
    if (next) { const content = next; next = null; report(content); }
  });
  const send = (done) => report({ weights: rows.map(({ value }) => value), gamma: gamma.value, done });

  function row(name, most, part) {
    const line = document.createElement("label"), title = document.createElement("span");
    const input = Object.assign(document.createElement("input"), { type: "range", min: 0, max: most, step: 0.001 });
    const output = document.createElement("output");
    title.textContent = name;
    input.setAttribute("aria-label", name);
    line.append(title, input, output);
    const own = { value: 0, line, show(value) { own.value = value; input.value = value; output.textContent = shown(value); } };
    input.addEventListener("input", () => { part(own, Number(input.value)); send(false); });
    input.addEventListener("change", () => send(true));
    // A notebook has its own meanings for keys; on the explorer's page digits lead to other views.
    const taken = (key) => !document.documentElement.dataset.explorer || /^(Arrow|Home|End|Page)/.test(key);
    input.addEventListener("keydown", (event) => { if (taken(event.key)) event.stopPropagation(); });
    root.append(line);
    return own;
  }

  // The others share what one leaves, in their proportions; from nothing, equally.
  function weigh(own, value) {
    const others = rows.filter((one) => one !== own), rest = others.reduce((sum, one) => sum + one.value, 0);
    if (!others.length) value = 1;
    for (const one of others) one.show(rest > 1e-9 ? (one.value * (1 - value)) / rest : (1 - value) / others.length);
    own.show(value);
  }

  function build() {
    root.replaceChildren();
    rows = model.names.map((name) => {
      const own = row(name, 1, weigh), leave = document.createElement("button");
      leave.type = "button";
      leave.textContent = "leave out";
      leave.setAttribute("aria-label", `leave ${name} out`);
      leave.addEventListener("click", (event) => { event.preventDefault(); weigh(own, 0); send(true); });
      if (model.names.length > 1) own.line.append(leave);
      return own;
    });
    gamma = row("gamma", 2, (own, value) => own.show(value));
    root.setAttribute("aria-label", "aggregation weights");
    fill();
  }
  function fill() {
    if (waiting || model.weights.length !== rows.length) return;
    rows.forEach((one, place) => one.show(model.weights[place]));
    gamma.show(model.gamma);
  }
  model.on("names", build);
  model.on("stamp", fill);
  build();
  return root;
}
