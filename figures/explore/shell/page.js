// The page around the views: the selection in the address, the back button, keys.
const KEYS = new Set(["ArrowLeft", "ArrowRight", "Home", "End", "?", "Escape", ..."123456789"]);
const ONE_STEP = 1500; // ms

// Where typing or arrows already have a meaning: sliders take arrows only, and a plot keeps those that it uses.
function busy(event) {
  const at = event.composedPath()[0];
  if (!(at instanceof Element)) return true;
  if (at.matches("input[type=range], input[type=checkbox], [role=slider], .noUi-handle")) return /^(Arrow|Home|End)/.test(event.key);
  return at.closest("input, textarea, select, [contenteditable], [role=grid], .tabulator") !== null
    || event.composedPath().some((part) => part.classList?.contains?.("tabulator"));
}

// The page opens anew by its address once the server answers again.
async function lost() {
  const line = document.getElementById("lost");
  line.hidden = false;
  for (;;) {
    line.textContent = "The connection to the explorer is lost; trying to open it again ...";
    try {
      const { ok } = await fetch(location.pathname, { method: "HEAD", cache: "no-store" });
      if (ok) return location.reload();
      line.textContent = "The explorer was started again: open the address that it printed.";
    } catch { /* not back yet */ }
    await new Promise((again) => { setTimeout(again, 2000); });
  }
}

// Parts of the page by their class, within shadow roots too.
const within = (root, name) => [...root.querySelectorAll("*")].some((part) => part.classList.contains(name) || (part.shadowRoot && within(part.shadowRoot, name)));

// Panel sends back from a notebook what came from the kernel, which then sends it once more: only the page's own
// changes go to the kernel.
function keepEchoes(document) {
  for (const root of document.roots()) {
    const changed = root._document_changed; // of the model that connects page and kernel
    if (changed) root._document_changed = (event) => { if (event.sync) changed.call(root, event); };
  }
}

export function render({ model, el, view }) {
  const app = model.address;
  if (!app) keepEchoes(view.model.document);
  const url = () => location.pathname + (model.state.query && `?${model.state.query}`);
  // The answer to an earlier step back must not undo a later one: answers have the number of what they answer.
  let asked = 0, answered = 0;
  const back = () => model.send_msg({ event: "address", query: location.search, number: ++asked });
  // Many changes of one thing, as by a slider, are one step for the back button.
  let step = null, at = 0;
  const write = () => {
    const { number } = model.state, answer = number > answered;
    if (!app || number < asked) return;
    answered = number;
    if (url() === location.pathname + location.search) return;
    const same = model.state.step === step && performance.now() - at < ONE_STEP;
    history[same || answer || model.state.step === "" ? "replaceState" : "pushState"]({}, "", url());
    [step, at] = [model.state.step, performance.now()];
  };
  const key = (event) => {
    if (!KEYS.has(event.key) || event.ctrlKey || event.metaKey || event.altKey || busy(event)) return;
    event.preventDefault();
    model.send_msg({ event: "key", key: event.key });
  };
  model.on("state", () => { write(); report(); });
  if (app) {
    document.getElementById("beginning")?.remove();
    write();
    Bokeh.documents[0].on_event("connection_lost", lost);
    addEventListener("popstate", back);
    addEventListener("keydown", key);
  }
  // Reports that the views are on the page: Bokeh fails if a widget changes while its view is being made.
  let placed = null;
  const report = async () => {
    const { views, placed: now } = model.state;
    if (placed === now) return;
    placed = now;
    const there = () => views.every((name) => within(el.getRootNode().host?.getRootNode() ?? document, `view-${name}`));
    do {
      await new Promise((again) => { setTimeout(again, 50); });
      if (placed !== now) return;
    } while (!there());
    model.send_msg({ event: "drawn", number: now });
    if (app) document.documentElement.dataset.explorer = String(views);
  };
  report();
  model.on("remove", () => {
    placed = null;
    removeEventListener("popstate", back);
    removeEventListener("keydown", key);
  });
  return document.createElement("span");
}
