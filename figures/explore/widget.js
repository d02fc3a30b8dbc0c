// The stage in a cell of a notebook: a page of its own in a frame, so that its styles, keys and sizes are its own.
// Its messages go through the model of the widget, over the notebook's connection to its kernel: no port is needed.

const HEIGHT = 780; // px
const ENDED = "The kernel of this notebook has ended or was started anew. Run the cell again; what is shown stays.";

function render({ model, el }) {
  const frame = document.createElement("iframe"), listeners = [];
  const dark = document.body.dataset.jpThemeLight === "false"; // JupyterLab's theme; elsewhere that of the browser
  const listen = (event, callback) => { listeners.push([event, callback]); model.on(event, callback); };
  const quiet = () => listeners.splice(0).forEach(([event, callback]) => model.off(event, callback));
  frame.title = "fedscape explorer";
  frame.style = `display: block; width: 100%; height: ${HEIGHT}px; border: 0; ${dark ? "color-scheme: dark" : ""}`;
  frame.host = { // read by the page whenever it is loaded, which is each time that the notebook moves the cell
    connect: (receive, opened, lost) => {
      quiet();
      const page = Math.random().toString(36).slice(2);
      listen("msg:custom", (content) => { if (content.page === page) { if (content.began) opened(); else receive(content.message); } });
      listen("comm_live_update", () => lost(ENDED));
      model.send({ page, begin: true });
      return { send: (message) => model.send({ page, message }) };
    },
    address: {
      read: () => model.get("address"),
      write: (text) => { model.set("address", text); model.save_changes(); },
      follow: (callback) => listen("change:address", callback),
    },
    picture: (png) => model.send({ picture: png }),
  };
  frame.srcdoc = model.get("page");
  el.classList.add("fedscape-live"); // hides what a saved notebook shows
  el.append(frame);
  return quiet;
}

export default { render };
