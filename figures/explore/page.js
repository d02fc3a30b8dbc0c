// The page around the views: the selection in the address, the back button, keys.
const KEYS = new Set(["ArrowLeft", "ArrowRight", "Home", "End", "?", "Escape", ..."123456789"]);
const ONE_STEP = 1500; // ms

// Where typing or arrows already have a meaning.
function busy(event) {
  const at = event.composedPath()[0];
  return !(at instanceof Element) || at.closest("input, textarea, select, [contenteditable], [role=slider], [role=grid], .tabulator, .noUi-handle, .plot") !== null
    || event.composedPath().some((part) => part.classList?.contains?.("tabulator"));
}

export function render({ model, el }) {
  const app = model.address;
  const kept = () => new URLSearchParams(location.search).get("token");
  const url = () => {
    const token = kept(), parts = [model.query, token && `token=${encodeURIComponent(token)}`].filter(Boolean);
    return location.pathname + (parts.length ? `?${parts.join("&")}` : "");
  };
  const back = () => model.send_msg({ event: "address", query: location.search });
  // Many changes of one thing, as by a slider, are one step for the back button.
  let step = null, at = 0;
  const write = () => {
    if (!app || url() === location.pathname + location.search) return;
    const same = model.step === step && performance.now() - at < ONE_STEP;
    history[same || model.step === "" ? "replaceState" : "pushState"]({}, "", url());
    [step, at] = [model.step, performance.now()];
  };
  const key = (event) => {
    if (!KEYS.has(event.key) || event.ctrlKey || event.metaKey || event.altKey || busy(event)) return;
    event.preventDefault();
    model.send_msg({ event: "key", key: event.key });
  };
  model.on("query", write);
  if (app) {
    addEventListener("popstate", back);
    addEventListener("keydown", key);
  }
  model.on("remove", () => {
    removeEventListener("popstate", back);
    removeEventListener("keydown", key);
  });
  return document.createElement("span");
}
