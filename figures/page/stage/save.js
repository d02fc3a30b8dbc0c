// What can be taken along: the pictures as seen, their numbers, and this page as one file.

function download(name, content, type) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const file = make("a", { href: URL.createObjectURL(blob), download: name });
  file.click();
  setTimeout(() => URL.revokeObjectURL(file.href), 10_000);
}

// The evaluated numbers of the landscapes on the stage, as a file.
function saveNumbers(stage) {
  const { state, land } = stage, path = ownPlane(state.view), metric = path ? "loss" : state.metric;
  const rows = land.surfaces(state.round).filter(({ at }) => at.frame).flatMap(({ run, at }) => { const surface = land.surfaceIn(at.frame, metric); return surface ? surface.points().map(([u, v, value]) => [JSON.stringify(stage.named(run)), at.round, u, v, value].join(",")) : []; });
  const { frame } = state.view === "models" ? land.models() : {}, columns = ["run", "name", "round", "u", "v", "basin", "chosen", "loss"];
  if (frame) { download(`${nameOfFile(stage)}.csv`, `${columns.join(",")}\n${frame.marks.map((mark) => columns.map((name) => mark[name]).join(",")).join("\n")}\n`, "text/csv"); return; }
  download(`${nameOfFile(stage)}.csv`, `run,round,u,v,${metric.replace(" ", "_")}\n${rows.join("\n")}\n`, "text/csv");
}

const nameOfFile = (stage) => `${stage.state.view}-round-${stage.state.round}`;
const LOOK = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "stroke-linejoin", "opacity", "font-size", "font-weight", "font-family", "paint-order", "text-anchor", "display"];

// A drawing with its style in it.
function styled(drawing) {
  const copy = drawing.cloneNode(true), from = [drawing, ...drawing.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((one, i) => { const look = getComputedStyle(one); for (const name of LOOK) to[i].style.setProperty(name, look.getPropertyValue(name)); to[i].removeAttribute("tabindex"); });
  for (const one of copy.querySelectorAll(".ground, title")) one.remove();
  return copy;
}

// The lines of a text as they are seen: words, place and weight.
function linesOf(element) {
  const lines = [], walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT), range = document.createRange();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) for (const { 0: word, index } of node.data.matchAll(/\S+\s*/g)) {
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    const box = range.getBoundingClientRect(), last = lines[lines.length - 1];
    if (box.right > node.parentElement.getBoundingClientRect().right + 1) continue; // it is cut
    if (last && last.node === node && Math.abs(last.box.top - box.top) < 2) last.words += word;
    else lines.push({ node, words: word, box, bold: Boolean(node.parentElement.closest("b")) });
  }
  return lines;
}

// The pictures and their colours, exactly as they are seen: a drawing, and its width and height, px.
function pictureOf(stage) {
  const parts = [], hall = stage.hall.element.getBoundingClientRect(), look = getComputedStyle(stage.root), ink = look.color, font = look.fontFamily;
  const boxes = stage.pictures.map((picture) => picture.element.getBoundingClientRect()), left = Math.min(...boxes.map((box) => box.left)) - 12, top = Math.min(...boxes.map((box) => box.top)) - 8;
  const text = (words, x, y, more = {}) => shape("text", { x, y, fill: ink, "font-family": font, "font-size": 14, ...more }, words);
  for (const { shown, title, plate, canvas, over, reading, side, tall } of stage.pictures) {
    if (!shown.frame) continue;
    const box = plate.getBoundingClientRect(), x = box.left - left, y = box.top - top, drawing = styled(over);
    for (const swatch of title.querySelectorAll("svg")) {
      const place = swatch.getBoundingClientRect(), line = styled(swatch);
      parts.push(fill(line, { x: place.left - left, y: place.top - top, width: place.width, height: place.height }));
    }
    for (const { words, box: place, bold } of linesOf(title)) parts.push(text(words, place.left - left, place.top - top + place.height / 2 + 5, { "font-weight": bold ? 700 : 400 }));
    parts.push(shape("image", { href: canvas.toDataURL("image/png"), x, y, width: side, height: tall, opacity: getComputedStyle(canvas).opacity }));
    parts.push(fill(drawing, { x, y, width: side, height: tall }));
    for (const { words, box: place } of linesOf(reading)) parts.push(text(words, place.left - left, place.top - top + place.height / 2 + 4, { "font-size": 12 }));
  }
  const bottom = Math.max(...boxes.map((box) => box.bottom)) - top, keys = [...stage.hall.key.children], tops = [...new Set(keys.map((key) => Math.round(key.getBoundingClientRect().top)))]; // of the rows of keys
  stage.hall.legends.forEach(({ name, stops, texts }, i) => {
    const box = keys[i].getBoundingClientRect(), x = Math.max(box.left - left, 12), id = `colours-${i}`, y = bottom + 18 + 46 * tops.indexOf(Math.round(box.top));
    parts.push(shape("linearGradient", { id }, ...stops.map((colour, at) => shape("stop", { offset: at / (stops.length - 1), "stop-color": colour }))), text(name, x, y, { "font-size": 12 }), shape("rect", { x, y: y + 5, width: box.width, height: 9, rx: 3, fill: `url(#${id})` }),
      ...texts.map((words, at) => text(words, x + (at / (texts.length - 1 || 1)) * box.width, y + 28, { "font-size": 12, "text-anchor": at === 0 ? "start" : at === texts.length - 1 ? "end" : "middle" })));
  });
  const width = Math.ceil(Math.max(...boxes.map((box) => box.right), ...keys.map((key) => key.getBoundingClientRect().right)) - left + 12), height = Math.ceil(bottom + 26 + 46 * tops.length);
  const defs = stage.root.querySelector("defs").cloneNode(true), paper = getComputedStyle(document.documentElement).getPropertyValue("--paper").trim() || "#fff";
  const drawing = shape("svg", { xmlns: SVG, width, height, viewBox: `0 0 ${width} ${height}` }, defs, shape("rect", { width, height, fill: paper }), ...parts, text(document.title, 12, height - 6, { "font-size": 11, opacity: 0.7 }));
  return { drawing, width, height, hall };
}

const asText = (drawing) => new XMLSerializer().serializeToString(drawing);
function saveDrawing(stage) { download(`${nameOfFile(stage)}.svg`, asText(pictureOf(stage).drawing), "image/svg+xml"); }

// On a canvas, so many times as large as on the screen.
async function canvasOf(stage, times) {
  const { drawing, width, height } = pictureOf(stage), image = new Image(), canvas = make("canvas", { width: times * width, height: times * height });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(asText(drawing))}`;
  await image.decode();
  canvas.getContext("2d").drawImage(image, 0, 0, times * width, times * height);
  return canvas;
}
async function savePicture(stage) { (await canvasOf(stage, 2)).toBlob((blob) => download(`${nameOfFile(stage)}.png`, blob)); }

// This page as one file that needs no server. say(words, cancel) says how far it is; cancel is null where it has ended.
async function savePage(stage, say) {
  let asked = null, stopped = false;
  const cancel = () => { stopped = true; if (asked) asked.cancel(); say("No file: you cancelled it.", null); };
  say("Evaluating what the file shows ...", cancel);
  try {
    const runs = stage.shown.flatMap((run) => (run.names || [{ name: run.key }]).map((member) => member.name)), live = blank(stage);
    const plain = Object.fromEntries(["figure", "filter", "follow", "tour"].map((name) => [name, live[name]]));
    const what_if = await stage.why.weights.toSave();
    if (stopped) return;
    asked = stage.link.ask("publish", { runs, address: addressOfState({ ...stage.state, ...plain }), what_if }, { onProgress: (progress) => say(`Saving ${progressWords(progress)}`, cancel) });
    say("Saving the page to send: evaluating its landscapes ...", cancel);
    const { name, base64, failed } = await asked;
    download(name, new Blob([bytesOf(base64)], { type: "text/html" }));
    say(`${name} is in your downloads. It opens as this page is now, anywhere, without a network. ${failed.length ? `Left out: ${failed.join(" ")}` : ""}`, null);
  } catch (reason) { if (!stopped) say(`No file: ${reason.message || reason}`, null); }
}
