// The stage in a cell of a notebook: a page of its own in a frame, so that its styles, keys and sizes are its own.
// Messages go through the model of the widget, over the notebook's connection to its kernel: no port is needed.

const HEIGHT = 780; // px
const STILL = 1500; // ms without a change until the picture of a saved notebook is taken

function render({ model, el }) {
  const frame = document.createElement("iframe"), dark = document.body.dataset.jpThemeLight === "false";
  frame.title = "fedscape explorer";
  frame.style = `display: block; width: 100%; height: ${HEIGHT}px; border: 0; color-scheme: ${dark ? "dark" : "light"}`;
  frame.srcdoc = model.get("page");
  let end = () => {};
  frame.addEventListener("load", () => { end(); end = begin(frame.contentWindow, model); }); // again when the cell is moved
  el.classList.add("fedscape-live"); // hides what a saved notebook shows
  el.append(frame);
  return () => end();
}

// Connects the stage of a frame with a model; returns what ends that.
function begin(page, model) {
  const heard = [], listeners = [];
  const listen = (event, callback) => { model.on(event, callback); listeners.push([event, callback]); };
  const transport = { send: (message) => model.send(message), onMessage: (callback) => heard.push(callback) };
  listen("msg:custom", (message) => heard.forEach((callback) => callback(message)));
  let still;
  const address = {
    read: () => model.get("address"),
    write: (text) => {
      if (text === model.get("address")) return;
      model.set("address", text);
      model.save_changes();
    },
    follow: (callback) => listen("change:address", callback),
  };
  page.explore(transport, address);
  return () => listeners.forEach(([event, callback]) => model.off(event, callback));
}

export default { render };
