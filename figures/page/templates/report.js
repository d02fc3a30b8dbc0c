// What the page does: draws figures when they come near, and follows the pickers of methods, run and round.
// `figures` are there before it (report.unpack.js).
const config = {
  displaylogo: false, showSendToCloud: false, showEditInChartStudio: false, plotlyServerURL: "", responsive: true,
  modeBarButtonsToRemove: ["select2d", "lasso2d", "zoomIn2d", "zoomOut2d", "autoScale2d", "tableRotation", "resetCameraLastSave3d"],
};
const hidden = new Set(), drawn = new Set(), near = new Set();
const plots = [...document.querySelectorAll(".plot")];
const texts = new Map(plots.map((plot) => [plot, plot.getAttribute("aria-label")]));
const [picker, slider, player] = ["run", "round", "play"].map((id) => document.getElementById(id));
const STEP = 300; // ms that a round is shown while rounds are played
let rounds = [], playing = false;

const isPicture = (plot) => "picture" in plot.dataset;
const figureOf = (plot) => figures[isPicture(plot) ? `${plot.dataset.figure}:${picker.value}` : plot.dataset.figure];
const round = () => rounds[slider.valueAsNumber];

// Place of the round of a figure that is nearest to the one picked.
function nearest(figure) {
  const away = figure.rounds.map((one) => Math.abs(one - round()));
  return away.indexOf(Math.min(...away));
}

// Data and layout of a figure, of the round picked where it has several.
function content(figure) {
  const place = figure.rounds ? nearest(figure) : -1;
  const data = structuredClone(figure.data), layout = structuredClone(figure.layout);
  if (figure.frames) figure.frames[place].traces.forEach((at, number) => { data[at] = structuredClone(figure.frames[place].data[number]); });
  return { data, layout, round: figure.rounds && figure.rounds[place] };
}

function draw(plot) {
  drawn.add(plot);
  const chosen = figureOf(plot);
  if (isPicture(plot)) label(plot, chosen);
  if (!chosen || chosen.absent) {
    if (chosen && !isPicture(plot)) {
      plot.hidden = true;
      plot.closest("figure").querySelector("figcaption").textContent = `${texts.get(plot)} Not shown: ${chosen.absent}`;
    }
    return Plotly.purge(plot);
  }
  const figure = content(chosen), { data, layout } = figure;
  for (const trace of data) if (hidden.has(trace.legendgroup)) trace.visible = false;
  delete layout.height;
  layout.template = template();
  if (isPicture(plot)) layout.uirevision = picker.value; // zoom is kept from round to round
  recolour(figure);
  if (phone.matches && !printing) narrow(figure);
  if (printing) Object.assign(layout, paperSize(plot));
  if (overRounds(plot)) { base.set(plot, layout.shapes || []); layout.shapes = shapesOf(plot); }
  const displayModeBar = phone.matches || printing ? false : "hover";
  return Plotly.react(plot, data, layout, { ...config, displayModeBar }).then(() => { untab(plot); follow(plot); });
}

// Curves over rounds: a line stands at the round of the pictures, and a click on a point moves it there.
const base = new Map();
const overRounds = (plot) => slider && rounds.length > 0 && !isPicture(plot);
function shapesOf(plot) {
  const look = { color: ground().muted, width: 1, dash: "dot" };
  return [...base.get(plot), { type: "line", xref: "x", yref: "paper", x0: round(), x1: round(), y0: 0, y1: 1, line: look, layer: "below" }];
}
function markRound() {
  for (const plot of plots) if (drawn.has(plot) && near.has(plot) && base.has(plot)) Plotly.relayout(plot, { shapes: shapesOf(plot) });
}
function follow(plot) {
  if ("followed" in plot.dataset) return;
  plot.dataset.followed = "";
  plot.on("plotly_click", ({ points: [at] }) => {
    if (overRounds(plot)) goTo(Math.round(at.x), at.data.legendgroup);
  });
}
function goTo(wanted, method) {
  const own = [...picker.options].find((one) => method && one.text.startsWith(`${method}, seed`));
  if (own) picker.value = own.value;
  offerRounds(wanted);
  renew(isPicture);
  markRound();
}

// The buttons of a mode bar are for the mouse: keys reach the plot and what follows it.
function untab(plot) {
  for (const one of plot.querySelectorAll(".modebar-btn, .modebar [tabindex]")) one.setAttribute("tabindex", "-1");
}

// Says of a picture which run and round it shows, or why it shows none.
function label(plot, chosen) {
  const shown = chosen && !chosen.absent, run = picker.selectedOptions[0].text;
  const at = shown && chosen.rounds ? `${run}, round ${chosen.rounds[nearest(chosen)]}.` : `${run}.`;
  const why = shown ? at : `Not for ${run}${chosen ? `: ${chosen.absent}` : "."}`;
  const figure = plot.closest("figure");
  plot.hidden = !shown;
  const samples = (shown && chosen.layout.meta && chosen.layout.meta.samples) || "";
  figure.querySelector(".at").textContent = why;
  figure.querySelector(".on").textContent = samples;
  plot.setAttribute("aria-label", `${texts.get(plot)} ${why} ${samples}`.trim());
}

// Draws again what is near the screen; the rest when it comes near.
function renew(chosen) {
  const wanted = plots.filter(chosen);
  for (const plot of wanted) drawn.delete(plot);
  return Promise.all(wanted.filter((plot) => near.has(plot)).map(draw));
}

function offerRounds(wanted = rounds.length ? round() : Infinity) {
  const pictures = plots.filter((plot) => isPicture(plot) && (figureOf(plot) || {}).rounds);
  rounds = [...new Set(pictures.map(figureOf).flatMap((one) => one.rounds))].sort((a, b) => a - b);
  slider.max = Math.max(0, rounds.length - 1);
  slider.disabled = player.disabled = rounds.length < 2;
  slider.value = rounds.reduce((best, one, at) => (Math.abs(one - wanted) < Math.abs(rounds[best] - wanted) ? at : best), 0);
  if (wanted === Infinity) slider.value = slider.max;
  tellRound();
}

function tellRound() {
  document.getElementById("round-shown").textContent = rounds.length ? round() : "";
  slider.setAttribute("aria-valuetext", rounds.length ? `round ${round()}` : "");
}

async function play() {
  if (slider.valueAsNumber >= rounds.length - 1) slider.value = 0; else slider.value = slider.valueAsNumber + 1;
  while (playing) {
    const begun = performance.now();
    tellRound();
    markRound();
    await renew(isPicture);
    await new Promise((go) => { setTimeout(go, Math.max(0, STEP - (performance.now() - begun))); });
    if (slider.valueAsNumber >= rounds.length - 1) setPlaying(false);
    if (playing) slider.value = slider.valueAsNumber + 1;
  }
}
function setPlaying(on) {
  playing = on;
  player.textContent = on ? "Pause" : "Play";
  player.setAttribute("aria-pressed", String(on));
}

function paintSwatches() {
  for (const swatch of document.querySelectorAll(".swatch")) swatch.style.background = legible(swatch.dataset.colour);
}

if (picker) {
  offerRounds();
  picker.addEventListener("change", () => { offerRounds(); renew(isPicture); markRound(); });
  slider.addEventListener("input", () => { tellRound(); renew(isPicture); markRound(); });
  player.addEventListener("click", () => { setPlaying(!playing); if (playing) play(); });
}
for (const box of document.querySelectorAll("[data-method]")) {
  box.addEventListener("change", () => {
    if (box.checked) hidden.delete(box.dataset.method); else hidden.add(box.dataset.method);
    renew((plot) => !isPicture(plot));
  });
}
for (const button of document.querySelectorAll("[data-download]")) {
  button.addEventListener("click", () => {
    const plot = button.closest("figure").querySelector(".plot");
    const about = isPicture(plot) ? `-${picker.value.replace(/[^\w.-]+/g, "-")}` : "";
    download(`${plot.dataset.figure}${about}.csv`, csv(figureOf(plot)), "text/csv");
  });
}
for (const query of [dark, phone]) query.addEventListener("change", () => { paintSwatches(); renew(() => true); });
paintSwatches();

const opened = [];
addEventListener("beforeprint", () => {
  printing = true;
  opened.push(...document.querySelectorAll(".report details:not([open])"));
  for (const part of opened) part.open = true;
  plots.forEach(draw);
});
addEventListener("afterprint", () => {
  printing = false;
  for (const part of opened.splice(0)) part.open = false;
  renew(() => true);
});

// A figure is drawn when it comes near the screen, and then kept.
const watcher = new IntersectionObserver((seen) => {
  for (const one of seen) {
    if (one.isIntersecting) near.add(one.target); else near.delete(one.target);
    if (one.isIntersecting && !drawn.has(one.target)) draw(one.target);
  }
}, { rootMargin: "300px" });
plots.forEach((plot) => watcher.observe(plot));
