// The stage in a cell of a notebook: a page of its own in a frame, so that its styles, keys and sizes are its own.
// Its messages go through the model of the widget, over the notebook's connection to its kernel: no port is needed.

const HEIGHT = 780; // px
const PATIENCE = 15000; // ms until a kernel that does not say that it heard a message counts as gone
const SILENT = "The kernel of this notebook does not answer: it is busy, or it has ended; then run the cell again. What is shown stays.";

function render({ model, el }) {
  const frame = document.createElement("iframe"), heard = {};
  const dark = document.body.dataset.jpThemeLight === "false"; // JupyterLab's theme; elsewhere that of the browser
  const quiet = (event) => { if (heard[event]) model.off(event, heard[event]); };
  const listen = (event, callback) => { quiet(event); model.on(event, heard[event] = callback); };
  frame.title = "fedscape explorer";
  frame.style = `display: block; width: 100%; height: ${HEIGHT}px; border: 0; ${dark ? "color-scheme: dark" : ""}`;
  frame.host = { // read by the page whenever it is loaded, which is each time that the notebook moves the cell
    connect: (receive, opened, lost) => {
      const page = Math.random().toString(36).slice(2);
      let due = null;
      const send = (content) => {
        model.send({ page, ...content });
        due ||= setTimeout(() => { quiet("msg:custom"); lost(SILENT); }, PATIENCE);
      };
      listen("msg:custom", (content) => {
        if (content.page !== page) return;
        clearTimeout(due);
        due = null;
        if (content.began) opened();
        else if (content.message) receive(content.message);
      });
      send({ begin: true });
      return { send: (message) => send({ message }) };
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
  return () => Object.keys(heard).forEach(quiet);
}

export default { render };
