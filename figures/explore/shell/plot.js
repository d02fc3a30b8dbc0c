// A plotly figure on the page: follows the page's colours, reports clicks, selections, zooms and drags of a point.
const CONFIG = { displaylogo: false, showSendToCloud: false, showEditInChartStudio: false, plotlyServerURL: "", responsive: false };
const NEAR = 16; // px from a point that still grab it
const STRIP = 30; // px above a plot for its tools where nothing hovers, so that they always show
const MAPS = ["contour", "contourcarpet", "surface", "heatmap"];

// plotly.js, loaded once per page: the explorer's own page loads it while the rest arrives; a notebook gets it from the
// kernel, compressed.
function library(model) {
  window.fedscapePlotly ??= (async () => {
    const early = document.getElementById("plotly");
    if (model.library && early) {
      if (!window.Plotly) await loaded(early);
      return window.Plotly;
    }
    const src = model.library || await received(model), before = window.Plotly, script = document.createElement("script");
    document.head.append(Object.assign(script, { src }));
    await loaded(script);
    const Plotly = window.Plotly;
    if (before) window.Plotly = before;
    return Plotly;
  })();
  return window.fedscapePlotly;
}

const loaded = (script) => new Promise((done, failed) => { Object.assign(script, { onload: done, onerror: failed }); });

function received(model) {
  return new Promise((done) => {
    const take = async ({ library }) => {
      if (!library) return;
      model.off("msg:custom", take);
      const packed = Uint8Array.from(atob(library), (letter) => letter.charCodeAt(0));
      const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
      done(URL.createObjectURL(new Blob([await new Response(stream).blob()], { type: "text/javascript" })));
    };
    model.on("msg:custom", take);
    model.send_msg({ event: "library" });
  });
}

// Colours of axes and text follow the text around the figure, so that it is read in light and dark.
function ground(el) {
  const channels = getComputedStyle(el).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  const dark = luminance(channels) > 0.4;
  const shade = (alpha) => `rgba(${channels.join(",")},${alpha})`;
  return { dark, text: shade(1), muted: shade(0.65), grid: shade(dark ? 0.16 : 0.12), paper: dark ? "#14181c" : "#ffffff" };
}

function template({ text, muted, grid, paper }) {
  const axis = { gridcolor: grid, linecolor: grid, zerolinecolor: grid, automargin: true, title: { standoff: 8 } };
  const deep = { gridcolor: grid, linecolor: grid, zerolinecolor: grid, backgroundcolor: "rgba(0,0,0,0)", showbackground: false };
  return { layout: {
    font: { color: text, size: 12 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    xaxis: axis, yaxis: axis, scene: { xaxis: deep, yaxis: deep, zaxis: deep },
    hoverlabel: { bgcolor: paper, bordercolor: text, font: { color: text } },
    modebar: { color: muted, activecolor: text, bgcolor: "rgba(0,0,0,0)" },
  } };
}

function luminance(channels) {
  const [r, g, b] = channels.map((part) => (part <= 10.31 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

// A colour made paler on a dark page until it stands out from it (3 : 1, as WCAG asks of graphics).
function legible(colour) {
  if (Array.isArray(colour)) return colour.map(legible);
  if (colour === "black") return legible("#000000");
  if (typeof colour !== "string" || !/^#[0-9a-f]{6}$/i.test(colour)) return colour;
  const channels = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  const behind = luminance([20, 24, 28]) + 0.05;
  for (let step = 0; step < 20 && (luminance(channels) + 0.05) / behind < 3; step++) {
    channels.forEach((part, at) => { channels[at] = part + 0.1 * (255 - part); });
  }
  return `rgb(${channels.map(Math.round).join(",")})`;
}

// Curves and points lie on the page itself; what lies on a map keeps the map's colours.
function recolour({ data, layout }) {
  if (data.some((trace) => MAPS.includes(trace.type))) return;
  for (const part of [...data.flatMap((trace) => [trace.line, trace.marker, trace.error_y]), ...(layout.shapes ?? []).map((shape) => shape.line)]) {
    if (part?.color) part.color = legible(part.color);
  }
}

const isNarrow = (width) => width < 420; // px

// In a narrow place a map has its colour bar below, and long titles of axes stand in two lines.
function narrow({ data, layout }, height) {
  layout.margin = layout.scene ? { l: 0, r: 0, t: 8, b: 8 } : { ...layout.margin, l: 48, r: 8 };
  const below = -60 / Math.max(height - 120, 100); // of the axes' height
  for (const trace of data) {
    if (trace.colorbar) Object.assign(trace.colorbar, { orientation: "h", y: below, yanchor: "top", x: 0.5, xanchor: "center", len: 0.9, title: { ...trace.colorbar.title, side: "top" } });
  }
  for (const [name, axis] of Object.entries(layout)) {
    if (/^[xy]axis/.test(name) && axis.title?.text) axis.title = { ...axis.title, text: inTwo(axis.title.text) };
  }
}

function inTwo(text) {
  const middle = text.length / 2, gaps = [...text.matchAll(/ /g)].map(({ index }) => index);
  if (text.length < 28 || !gaps.length || text.includes("<")) return text;
  const at = gaps.reduce((best, gap) => (Math.abs(gap - middle) < Math.abs(best - middle) ? gap : best));
  return `${text.slice(0, at)}<br>${text.slice(at + 1)}`;
}

const point = ({ x, y, z, curveNumber, pointNumber, customdata, data }) =>
  ({ x, y, z: typeof z === "number" ? z : null, trace: data?.name ?? "", curve: curveNumber, index: pointNumber, data: customdata ?? null });

export function render({ model, el }) {
  const plot = document.createElement("div");
  plot.className = "plot";
  plot.tabIndex = 0;
  plot.setAttribute("role", "img");
  const strip = matchMedia("(hover: none)").matches ? STRIP : 0;
  plot.style.cssText = `width: 100%; height: calc(100% - ${strip}px); margin-top: ${strip}px; outline-offset: 2px`;
  const label = () => plot.setAttribute("aria-label", model.label);
  let Plotly = null, drawing = Promise.resolve(), held = null, waiting = false, next = null, gone = false;

  const data = ({ clientX, clientY }) => {
    const { left, top } = plot.getBoundingClientRect(), { xaxis, yaxis } = plot._fullLayout;
    if (!xaxis?.p2d) return {};
    return { x: xaxis.p2d(clientX - left - xaxis._offset), y: yaxis.p2d(clientY - top - yaxis._offset) };
  };

  // Draws one after the other, never the same thing twice; what is asked for while one is queued comes with it.
  let queued = false, shown = [];
  function draw() {
    if (queued) return;
    queued = true;
    drawing = drawing.then(async () => {
      const place = plot._fullLayout ? null : settled();
      if (model.figure && !gone) Plotly ??= await library(model);
      await place;
      queued = false;
      if (!model.figure || gone || !plot.isConnected || !plot.clientWidth) return;
      if (!Plotly) { draw(); return; } // the figure came while the place got its size
      const look = ground(plot), now = [model.figure, look.text, isNarrow(plot.clientWidth)];
      if (now.every((part, at) => part === shown[at])) { await resize(); return; }
      shown = now;
      const figure = JSON.parse(model.figure);
      delete figure.layout.width;
      delete figure.layout.height;
      figure.layout.template = template(look);
      if (look.dark) recolour(figure);
      if (isNarrow(plot.clientWidth)) narrow(figure, plot.clientHeight);
      for (const trace of plot._fullData ?? []) delete trace._z; // a carpet's old values, which plotly would draw again
      await Plotly.react(plot, figure.data, { autosize: true, ...figure.layout }, { ...CONFIG, ...model.config });
      plot.querySelector(".modebar-container").style.top = `${-strip}px`;
      adopt();
      listen();
      plot.dataset.drawn = String(Number(plot.dataset.drawn ?? 0) + 1);
    }).catch((problem) => { [queued, shown] = [false, []]; console.error(problem); });
  }

  async function resize() {
    const { width, height } = plot._fullLayout;
    if (width !== plot.clientWidth || height !== plot.clientHeight) await Plotly.Plots.resize(plot);
  }

  // The place has its size once the style sheets are there.
  async function settled() {
    for (let width = -1, frames = 0; width !== plot.clientWidth && frames < 60; frames++) {
      width = plot.clientWidth;
      await new Promise((next) => { requestAnimationFrame(next); });
    }
  }

  // plotly puts its rules into the page; a shadow root needs a copy of them.
  function adopt() {
    const root = plot.getRootNode(), rules = document.getElementById("plotly.js-style-global");
    if (root === document || !rules || root.fedscapeRules) return;
    root.fedscapeRules = new CSSStyleSheet();
    for (const rule of rules.sheet.cssRules) root.fedscapeRules.insertRule(rule.cssText);
    root.adoptedStyleSheets = [...root.adoptedStyleSheets, root.fedscapeRules];
  }

  const send = (event, content) => model.send_msg({ event, ...content });

  function listen() {
    if (plot.dataset.listening) return;
    plot.dataset.listening = "yes";
    plot.on("plotly_click", ({ points, event }) => send("click", { points: points.map(point), ...data(event) }));
    plot.on("plotly_selected", (part) => part && send("select", { points: (part.points ?? []).map(point), x: part.range?.x ?? null, y: part.range?.y ?? null }));
    plot.on("plotly_deselect", () => send("select", { points: [], x: null, y: null }));
    plot.on("plotly_relayout", (change) => {
      if (!Object.keys(change).some((name) => /^[xy]axis\d*\.(range|autorange)/.test(name))) return;
      const { xaxis, yaxis } = plot._fullLayout;
      if (xaxis?.range) send("zoom", { x: [...xaxis.range], y: [...yaxis.range] });
    });
  }

  // A drag is sent when the one before it was answered: a slow answer never makes a queue.
  function report(content) {
    if (waiting) { next = content; return; }
    waiting = true;
    send("drag", content);
  }
  model.on("msg:custom", ({ ack }) => {
    if (!ack) return;
    waiting = false;
    if (next) { const content = next; next = null; report(content); }
  });

  function grabbed(event) {
    const at = plot.data?.findIndex((trace) => trace.name === model.drag) ?? -1;
    if (!model.drag || at < 0) return null;
    const { left, top } = plot.getBoundingClientRect(), { xaxis, yaxis } = plot._fullLayout, trace = plot._fullData[at];
    const far = [...trace.x].map((x, index) => Math.hypot(xaxis.d2p(x) + xaxis._offset + left - event.clientX, yaxis.d2p(trace.y[index]) + yaxis._offset + top - event.clientY));
    const index = far.indexOf(Math.min(...far));
    return far[index] <= NEAR ? { at, index } : null;
  }
  function move({ at, index }, { x, y }, done) {
    const trace = plot._fullData[at], xs = [...trace.x], ys = [...trace.y];
    xs[index] = x;
    ys[index] = y;
    Plotly.restyle(plot, { x: [xs], y: [ys] }, [at]);
    report({ index, x, y, done });
  }
  plot.addEventListener("pointerdown", (event) => {
    held = grabbed(event);
    if (!held) return;
    event.preventDefault();
    event.stopPropagation();
    plot.setPointerCapture(event.pointerId);
  }, true);
  plot.addEventListener("mousedown", (event) => { if (held) event.stopPropagation(); }, true);
  plot.addEventListener("touchstart", (event) => { if (held) { event.preventDefault(); event.stopPropagation(); } }, { capture: true, passive: false });
  plot.addEventListener("pointermove", (event) => { if (held) move(held, data(event), false); });
  plot.addEventListener("pointerup", (event) => { if (held) move(held, data(event), true); held = null; });
  plot.addEventListener("keydown", (event) => {
    const [right, up] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] ?? [0, 0];
    const at = plot.data?.findIndex((trace) => trace.name === model.drag) ?? -1, { scene, xaxis, yaxis } = plot._fullLayout ?? {};
    if (!right && !up) return;
    if (model.drag && at >= 0) {
      const step = (axis) => (axis.range[1] - axis.range[0]) / (event.shiftKey ? 10 : 50), trace = plot._fullData[at];
      move({ at, index: 0 }, { x: trace.x[0] + right * step(xaxis), y: trace.y[0] + up * step(yaxis) }, true);
    } else if (scene) {
      const { x, y, z } = scene.camera.eye, radius = Math.hypot(x, y), angle = Math.atan2(y, x) + 0.15 * right;
      Plotly.relayout(plot, { "scene.camera.eye": { x: radius * Math.cos(angle), y: radius * Math.sin(angle), z: z + 0.15 * up } });
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });

  const sized = new ResizeObserver(() => { if (plot.clientWidth) draw(); });
  const dark = matchMedia("(prefers-color-scheme: dark)"), themed = new MutationObserver(draw);
  dark.addEventListener("change", draw);
  themed.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
  model.on("figure", draw);
  model.on("label", label);
  model.on("remove", () => {
    gone = true;
    sized.disconnect();
    themed.disconnect();
    dark.removeEventListener("change", draw);
    if (Plotly) Plotly.purge(plot);
  });
  label();
  sized.observe(plot);
  return plot;
}
