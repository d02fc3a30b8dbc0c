// Elements of the page. Text is always text, never markup: names of runs and classes come from elsewhere.

const SVG = "http://www.w3.org/2000/svg";
const LONGEST = 60; // letters of a label

function fill(element, attributes, children = []) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}
const make = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const button = (attributes, ...children) => make("button", { type: "button", ...attributes }, ...children);
const shape = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// A list to pick from: [value, text] of each; `name` is what it is called.
function picker(name, choices, present, act, more = {}) {
  const options = choices.map(([value, text]) => make("option", { value, selected: String(value) === String(present ?? "") }, text));
  return make("select", { "aria-label": name, change: ({ target }) => act(target.value), ...more }, ...options);
}
const labelled = (text, choices, present, act) => make("label", {}, `${text} `, picker(text, choices, present, act));

// One of several: a group of radio buttons that looks like one control.
function segments(name, label, choices, present, choose) {
  const options = choices.map(([value, text, why]) => make("label", { title: why },
    make("input", { type: "radio", name, value, checked: value === present, disabled: Boolean(why), title: why || null, change: () => choose(value) }), make("span", {}, text)));
  return make("fieldset", { class: "segments" }, make("legend", { class: "unseen" }, label), ...options);
}

// A table, list or drawing that is one stop of the keyboard: arrows move inside it.
const STOPS = new WeakSet();
function oneStop(container, selector) {
  const items = [...container.querySelectorAll(selector)];
  const present = items.find((item) => item.getAttribute("aria-pressed") === "true" || item.checked) || items[0];
  for (const item of items) item.setAttribute("tabindex", item === present ? 0 : -1);
  if (STOPS.has(container)) return;
  STOPS.add(container);
  container.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    const all = [...container.querySelectorAll(selector)], at = all.indexOf(document.activeElement);
    if (!step || at < 0) return;
    event.preventDefault();
    event.stopPropagation();
    const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
    for (const item of all) item.setAttribute("tabindex", item === next ? 0 : -1);
    next.focus();
  });
}

// A colour as three numbers to 255, and its relative luminance, 0 to 1, as WCAG has it.
const channelsOf = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
function brightness(colour) {
  const [r, g, b] = (typeof colour === "string" ? channelsOf(colour) : colour).map((part) => (part <= 10.31 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

// The dash of a method, its lengths times so much.
const dashOf = ({ dash }, times) => (dash.length ? dash.map((length) => times * length).join(" ") : null);

// A short line of a method: its colour and dash.
function swatch(run, width = 26) {
  return shape("svg", { class: "swatch-line", width, height: 10, "aria-hidden": "true" },
    shape("line", { x1: 1, x2: width - 1, y1: 5, y2: 5, stroke: run.shade, "stroke-width": 3, "stroke-dasharray": dashOf(run, 2) }));
}

// A label without its middle where it is long, and with its own direction of writing: it stands inside sentences.
function briefly(label) {
  const signs = [...label], short = signs.length > LONGEST ? [...signs.slice(0, LONGEST / 2), "…", ...signs.slice(1 - LONGEST / 2)].join("") : label;
  return /\p{Script=Hebrew}|\p{Script=Arabic}|\p{Script=Syriac}|\p{Script=Thaana}/u.test(short) ? `\u2068${short}\u2069` : short;
}

// A run by all that tells it from others: its label may be short where few runs are on the page.
const fullName = (run) => [run.full || run.key, ...(run.names || []).map(({ name }) => name)].join("\n");

// Points as a path, broken where a value is missing.
function pathOf(points) {
  let pen = "M";
  return points.map(([x, y]) => {
    if (!Number.isFinite(y)) { pen = "M"; return ""; }
    const piece = `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = "L";
    return piece;
  }).join("");
}

// Whether what a part of the page is drawn from is another than at its last drawing.
function isNew(part, drawnFrom) {
  const before = part.mark;
  part.mark = JSON.stringify(drawnFrom);
  return part.mark !== before;
}

// The smallest round step between ticks that is no smaller than `least`.
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].find((times) => times * power >= least) * power;
}

// A term, whose meaning appears when it is pointed at, focused or touched.
function term(name, terms, text = null) {
  if (!terms[name]) return make("span", {}, name);
  return button({ class: text ? "term inside" : "term", "aria-label": `${text || name}: ${terms[name]}` }, text || name, make("span", { class: "meaning", "aria-hidden": "true" }, terms[name]));
}

// Names of terms in a text, in their order; what each picture has as a mark is explained there.
function termsIn(text, terms) {
  const plain = text.toLowerCase().replaceAll("-", " "), place = (name) => plain.search(new RegExp(`\\b${name.toLowerCase()}\\b`));
  return Object.keys(terms).filter((name) => !["End", "Aggregate"].includes(name) && place(name) >= 0).map((name) => ({ name, at: place(name) })).sort((a, b) => a.at - b.at);
}

// A text whose terms have their meanings, each at its first place; `seen` has those that are explained nearby.
function termed(text, terms, seen = new Set()) {
  const parts = [];
  let from = 0;
  for (const { name, at } of termsIn(text, terms)) {
    if (seen.has(name) || at < from) continue;
    seen.add(name);
    parts.push(text.slice(from, at), term(name, terms, text.slice(at, from = at + name.length)));
  }
  return [...parts, text.slice(from)];
}
const meanings = (text, terms) => termsIn(text, terms).map(({ name }) => ` ${name}: ${terms[name]}`).join("");

// What a control is called, to find it again after its part of the page was drawn anew.
function nameOf(element) { return { tag: element.tagName.toLowerCase(), name: element.getAttribute("aria-label") || `${element.name || ""} ${element.value || ""} ${element.textContent}` }; }

// A method's colour, paler on a dark page until it stands out from it (3 : 1).
function shadeOf(colour, dark) {
  if (!dark || !/^#[0-9a-f]{6}$/i.test(colour)) return colour;
  let parts = channelsOf(colour);
  for (let step = 0; step < 20 && (brightness(parts) + 0.05) / 0.0587 < 3; step++) parts = parts.map((part) => part + 0.1 * (255 - part));
  return `rgb(${parts.map(Math.round).join(",")})`;
}
