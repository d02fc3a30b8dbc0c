"use strict";
// How figures look on this page: light, dark, on paper, on a phone.
const dark = matchMedia("(prefers-color-scheme: dark)"), phone = matchMedia("(max-width: 40rem)");
const PAPER_WIDTH = 690; // px between the margins of A4 and Letter

// On paper, the plots of a grid stand in two columns, and all are lower than on a screen.
function paperSize(plot) {
  const beside = plot.closest(".grid") !== null;
  return { width: beside ? PAPER_WIDTH / 2 - 8 : PAPER_WIDTH, height: beside ? 290 : Math.min(parseInt(plot.style.height), 420) };
}
let printing = false;

function ground() {
  const light = printing || !dark.matches;
  return light ? { light, text: "#1d2329", grid: "#e3e7eb", paper: "#ffffff", muted: "#5b6670" }
    : { light, text: "#e4e8ec", grid: "#333b43", paper: "#14181c", muted: "#9aa5af" };
}

// Colours of axes and text follow the page, so that one figure is read in light, dark and on paper.
function template() {
  const { text, grid, paper, muted } = ground();
  const axis = { gridcolor: grid, linecolor: grid, zerolinecolor: grid, automargin: true, title: { standoff: 8 } };
  const layout = {
    font: { color: text, size: 12 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    xaxis: axis, yaxis: axis,
    hoverlabel: { bgcolor: paper, bordercolor: text, font: { color: text } },
    modebar: { color: muted, activecolor: text, bgcolor: "rgba(0,0,0,0)" },
  };
  return { layout };
}

const legible = (colour) => (typeof colour === "string" ? shadeOf(colour, !ground().light) : colour); // as on the stage

// Curves and points are drawn on the page itself; what lies on a map keeps the map's colours.
function recolour(figure) {
  if (figure.data.some((trace) => ["contour", "contourcarpet", "surface", "heatmap"].includes(trace.type))) return;
  for (const trace of figure.data) {
    for (const part of [trace.line, trace.marker]) {
      if (!part || !part.color) continue;
      part.color = Array.isArray(part.color) ? part.color.map(legible) : legible(part.color);
    }
  }
}

// On a phone there is no room beside a map for its colour bar, and names of three models are written on it.
function narrow(figure) {
  figure.layout.margin = { l: 48, r: 8, t: 16, b: 40 };
  figure.layout.dragmode = false;
  for (const trace of figure.data) {
    if (trace.colorbar) Object.assign(trace.colorbar, { orientation: "h", y: -0.2, yanchor: "top", x: 0.5, xanchor: "center", len: 0.9, title: { ...trace.colorbar.title, side: "top" } });
  }
}
