"use strict";
const figures = JSON.parse(document.getElementById("figures").textContent);
const config = { displaylogo: false, showSendToCloud: false, showEditInChartStudio: false, plotlyServerURL: "", responsive: true };
const dark = matchMedia("(prefers-color-scheme: dark)"), phone = matchMedia("(max-width: 40rem)");
const hidden = new Set();
const plots = [...document.querySelectorAll(".plot")];
const drawn = new Set();
const picker = document.getElementById("landscape");
const slider = document.getElementById("round");
let printing = false;

// Colours of axes and text follow the page, so that one figure is read in light, dark and on paper.
function template() {
  const light = printing || !dark.matches;
  const text = light ? "#1d2329" : "#e4e8ec", grid = light ? "#e3e7eb" : "#333b43", paper = light ? "#ffffff" : "#14181c";
  const axis = { gridcolor: grid, linecolor: grid, zerolinecolor: grid, automargin: true, title: { standoff: 8 } };
  const deep = { gridcolor: grid, linecolor: grid, zerolinecolor: grid, backgroundcolor: "rgba(0,0,0,0)", showbackground: false };
  const layout = {
    font: { color: text, size: 12 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    xaxis: axis, yaxis: axis, scene: { xaxis: deep, yaxis: deep, zaxis: deep },
    hoverlabel: { bgcolor: paper, bordercolor: text, font: { color: text } },
    modebar: { color: light ? "#5b6670" : "#9aa5af", activecolor: text, bgcolor: "rgba(0,0,0,0)" },
  };
  return { layout };
}

function figureOf(plot) {
  const inLandscape = picker && plot.closest("#landscapes");
  return figures[inLandscape ? `${plot.dataset.figure}:${picker.value}` : plot.dataset.figure];
}

function draw(plot) {
  const figure = structuredClone(figureOf(plot)), layout = figure.layout;
  const steps = layout.sliders ? layout.sliders[0].steps : [];
  delete layout.sliders;
  delete layout.height;
  if (steps.length) {
    const [{ visible }, changes] = steps[slider.valueAsNumber].args;
    if (changes["scene.annotations"]) layout.scene.annotations = changes["scene.annotations"];
    figure.data.forEach((trace, index) => { trace.visible = visible[index]; });
  }
  for (const trace of figure.data) if (hidden.has(trace.legendgroup)) trace.visible = false;
  layout.template = template();
  if (phone.matches) narrow(figure);
  drawn.add(plot);
  return Plotly.react(plot, figure.data, layout, config);
}

// On a phone there is no room beside a map for its colour bar, and names of three models are written on it.
function narrow(figure) {
  figure.layout.margin = figure.layout.scene ? { l: 0, r: 0, t: 8, b: 8 } : { l: 48, r: 8, t: 16, b: 40 };
  figure.layout.dragmode = figure.layout.scene ? "orbit" : false;
  for (const trace of figure.data) {
    if (trace.colorbar) Object.assign(trace.colorbar, { orientation: "h", y: -0.2, yanchor: "top", x: 0.5, xanchor: "center", len: 0.9, title: { ...trace.colorbar.title, side: "top" } });
  }
}

function prepareSlider() {
  const steps = (figures[`surface:${picker.value}`].layout.sliders || [{ steps: [] }])[0].steps;
  const before = slider.max ? slider.valueAsNumber / Math.max(1, slider.max) : 1;
  slider.max = Math.max(0, steps.length - 1);
  slider.value = Math.round(before * slider.max);
  slider.disabled = steps.length < 2;
  tellRound(steps);
}

function tellRound(steps) {
  const step = steps[slider.valueAsNumber];
  document.getElementById("round-shown").textContent = step ? step.label : "";
  slider.setAttribute("aria-valuetext", step ? `round ${step.label}` : "");
}

function redrawLandscapes() {
  for (const plot of plots) if (plot.closest("#landscapes") && drawn.has(plot)) draw(plot);
}

function turn(plot, key) {
  const by = { ArrowLeft: [-0.15, 0], ArrowRight: [0.15, 0], ArrowUp: [0, 0.15], ArrowDown: [0, -0.15] }[key];
  if (!by || !plot._fullLayout || !plot._fullLayout.scene) return false;
  const { x, y, z } = plot._fullLayout.scene.camera.eye;
  const radius = Math.hypot(x, y), angle = Math.atan2(y, x) + by[0];
  Plotly.relayout(plot, { "scene.camera.eye": { x: radius * Math.cos(angle), y: radius * Math.sin(angle), z: z + by[1] } });
  return true;
}

if (picker) {
  prepareSlider();
  picker.addEventListener("change", () => { prepareSlider(); redrawLandscapes(); });
  slider.addEventListener("input", () => {
    tellRound(figures[`surface:${picker.value}`].layout.sliders[0].steps);
    redrawLandscapes();
  });
}
for (const box of document.querySelectorAll("[data-method]")) {
  box.addEventListener("change", () => {
    if (box.checked) hidden.delete(box.dataset.method); else hidden.add(box.dataset.method);
    for (const plot of drawn) if (!plot.closest("#landscapes")) draw(plot);
  });
}
for (const plot of plots) {
  plot.addEventListener("keydown", (event) => { if (turn(plot, event.key)) event.preventDefault(); });
}
for (const query of [dark, phone]) query.addEventListener("change", () => drawn.forEach(draw));
addEventListener("beforeprint", () => {
  printing = true;
  document.querySelectorAll("details").forEach((part) => { part.open = true; });
  plots.forEach(draw);
});
addEventListener("afterprint", () => { printing = false; drawn.forEach(draw); });

// A figure is drawn when it comes near the screen, and then kept.
const watcher = new IntersectionObserver((seen) => {
  for (const one of seen) if (one.isIntersecting && !drawn.has(one.target)) draw(one.target);
}, { rootMargin: "300px" });
plots.forEach((plot) => watcher.observe(plot));
