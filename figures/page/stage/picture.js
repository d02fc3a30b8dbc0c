// One picture of the stage: the landscape of a run, or a difference to another, with its models as marks.

const MARGIN = { left: 36, top: 6, right: 8 }, SMALL_MARGIN = { left: 30, top: 3, right: 2 }; // px around a map, for its axes

class Picture {
  constructor(stage) {
    this.stage = stage;
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.ground = shape("rect", { class: "ground", tabindex: 0, role: "application" });
    this.axes = shape("g", { class: "axes", "aria-hidden": "true" });
    this.marks = new Marks(this);
    this.cursor = shape("g", { class: "cursor", "aria-hidden": "true" });
    this.over = shape("svg", { class: "over" }, this.axes, this.ground, this.marks.arrows, this.marks.element, this.cursor);
    this.plate = make("div", { class: "plate" }, this.canvas, this.over);
    this.title = make("div", { class: "picture-title" });
    this.status = make("span", { class: "status" });
    this.reading = make("div", { class: "reading" });
    this.note = make("p", { class: "absent" });
    this.element = make("figure", { class: "picture" }, this.title, this.plate, this.note, this.reading);
    this.listen();
  }

  // shown: {run, other, at, frame, surface, fine, scale, half, view, fade, words}; frame null: `words` say why.
  // side: of a square one, px; stretch: how much longer than to scale the second axis of a path is.
  draw(shown, side, stretch) {
    this.shown = shown;
    const { run, other, frame, words, at } = shown;
    const named = (one, ...parts) => make("span", { class: "named" }, parts[0], swatch(one), make("b", { title: fullName(one) }, one.label), make("span", { class: "seed" }, this.stage.seedOf(one)), parts.slice(1));
    const place = [make("span", { class: "at" }, words.at ? ` ${words.at}` : ""), this.status];
    this.title.replaceChildren(...(other ? [named(run, null), named(other, make("span", { class: "minus" }, " minus "), ...place)] : shown.view === "models" ? [...this.stage.shown.map((one) => named(one, null)), this.status] : [named(run, null, ...place)]));
    this.showProgress();
    this.element.dataset.run = run.key;
    this.plate.hidden = !frame;
    this.plate.classList.toggle("stale", Boolean(at.stale));
    this.plate.classList.toggle("rough", Boolean(at.rough));
    this.plate.setAttribute("aria-busy", String(Boolean(at.pending)));
    this.note.hidden = Boolean(frame);
    this.reading.hidden = !frame;
    this.note.replaceChildren(...(frame ? [] : [words.absent, words.act && " ", words.act].filter(Boolean)));
    this.note.classList.toggle("coming", Boolean(at.pending));
    Object.assign(this.note.style, { maxWidth: `${side}px`, height: at.pending ? `${side}px` : "" });
    if (!frame) { this.reading.textContent = ""; return; }
    this.side = side;
    this.shares = sharesOf(shown.view, shown.surface, shown.half);
    this.stretch = shown.view === "path" ? stretch : 1;
    this.shares[1] *= this.stretch;
    this.tall = side - this.extent * (1 - this.shares[1]);
    Object.assign(this.plate.style, { width: `${side}px`, height: `${this.tall}px` });
    const pixels = [side, this.tall].map((part) => Math.round(part * Math.min(devicePixelRatio || 1, 2)));
    if (this.canvas.width !== pixels[0] || this.canvas.height !== pixels[1]) { [this.canvas.width, this.canvas.height] = pixels; this.mapped = null; }
    this.over.setAttribute("viewBox", `0 0 ${side} ${this.tall}`);
    this.middle = ownPlane(shown.view) ? [shown.surface.u, shown.surface.v].map(([low, high]) => (low + high) / 2) : [0, 0];
    const spot = shown.view === "relief" ? { x: 0, y: 0, width: side, height: side } : this.box;
    fill(this.ground, { ...spot, "aria-label": `${words.label} Arrow keys ${ownPlane(shown.view) ? "step through the rounds" : "move the point"}${shown.view === "relief" ? ", with Shift they turn the relief" : ""}.` });
    if (shown.view === "relief") this.drawRelief();
    else this.drawMap(pixels[0] / side);
    this.marks.draw();
    this.follow();
  }

  get small() { return this.side < SMALL; }

  get margins() { return this.small ? SMALL_MARGIN : MARGIN; }
  get extent() { return this.side - this.margins.left - this.margins.right; } // px of the longer axis

  // The axes' rectangle, px: that of the map of a path, else a square.
  get box() {
    const { left, top } = this.margins, [width, height] = this.shares.map((share) => share * this.extent);
    return { x: left + (this.extent - width) / 2, y: top, width, height };
  }

  showProgress() {
    const { at: { pending: entry }, words } = this.shown, far = entry?.progress ? progressWords({ ...entry.progress, words: "" }) : "";
    this.status.textContent = far && `${words.at ? ";" : ""} ${far}`;
  }

  // Where a point is seen, px; `height` on a relief, by default that of the surface.
  seen(u, v, height) {
    const { half, view, scale, surface } = this.shown, side = this.side;
    if (view !== "relief") {
      const { x, y, width, height: tall } = this.box, [right, up] = this.middle;
      return [x + width / 2 + ((u - right) / (2 * half)) * this.extent, y + tall / 2 + ((up - v) / (2 * half)) * this.extent * this.stretch];
    }
    const own = height === undefined ? surface.height(u, v) : height;
    const share = Number.isFinite(own) ? (own - scale.low) / (scale.high - scale.low) : 0;
    const lift = this.stage.camera.look.lift;
    const [x, y] = this.stage.camera.seen([u / (2 * half), v / (2 * half), this.stage.camera.rise(Math.min(share, 1) + lift)]);
    return [((x + 1) / 2) * side, ((1 - y) / 2) * side];
  }

  drawMap(ratio) {
    const { fine, surface, scale, half } = this.shown, { box } = this, seen = [fine, surface, scale.low, scale.high, scale.table, scale.count, half, this.side, ratio, this.stretch, ...this.middle];
    if (this.mapped && seen.every((part, i) => part === this.mapped[i])) return; // it is drawn already
    this.mapped = seen;
    const pen = this.canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.side, this.side);
    pen.imageSmoothingQuality = "high";
    const [left, bottom] = this.seen(surface.u[0], surface.v[0]), [right, top] = this.seen(surface.u[1], surface.v[1]);
    const cell = { x: (right - left) / (FINE - 1), y: (bottom - top) / (FINE - 1) };
    pen.save();
    for (const rectangle of [[box.x, box.y, box.width, box.height], [left, top, right - left, bottom - top]]) {
      pen.beginPath();
      pen.rect(...rectangle);
      pen.clip();
    }
    pen.drawImage(coloured(fine, scale), left - cell.x / 2, top - cell.y / 2, cell.x * FINE, cell.y * FINE);
    const levels = scale.difference ? levelsOf(scale.low, scale.high, 11) : levelsOf(scale.low, scale.high, scale.count);
    for (const level of levels) {
      const middle = scale.difference && Math.abs(level) < 1e-9 * scale.high;
      pen.lineWidth = middle ? 1.8 : 0.8;
      pen.strokeStyle = scale.difference ? `rgba(20, 24, 28, ${middle ? 0.9 : 0.28})` : "rgba(255, 255, 255, 0.5)";
      const pieces = levelLine(fine, level);
      pen.beginPath();
      for (let i = 0; i < pieces.length; i += 4) {
        pen.moveTo(left + pieces[i] * cell.x, bottom - pieces[i + 1] * cell.y);
        pen.lineTo(left + pieces[i + 2] * cell.x, bottom - pieces[i + 3] * cell.y);
      }
      pen.stroke();
    }
    pen.restore();
    this.drawAxes(half, box);
  }

  drawAxes(half, { x, y, width, height }) {
    const parts = [shape("rect", { x, y, width, height, class: "edge" })], px = this.small ? 44 : 34, whole = 2 * half;
    this.middle.forEach((middle, axis) => {
      const drawn = this.extent * (axis ? this.stretch : 1), own = (whole * this.shares[axis] * this.extent) / drawn; // px of `whole`, and what of it this axis has
      const step = Math.max(Math.min(roundStep(whole / Math.min(drawn / px, 9)), roundStep(own / 5)), roundStep((whole * (axis ? 14 : 30)) / drawn)); // three ticks where they have room
      for (let at = Math.ceil((middle - half) / step) * step; at <= middle + half; at += step) {
        const text = written(Math.abs(at) < step / 1e6 ? 0 : at, 2).replace("-", "−"), [px, py] = this.seen(at, at), wide = 3.2 * text.length;
        if (axis === 0 ? px - wide < x || px + wide > x + width + 8 : py < y + 5 || py > y + height - 5) continue; // it would lie beside its axis
        parts.push(axis === 0 ? shape("text", { x: px, y: y + height + 13, "text-anchor": "middle" }, text) : shape("text", { x: x - 5, y: py + 4, "text-anchor": "end" }, text));
      }
    });
    const path = ownPlane(this.shown.view), [along, up] = this.shown.view === "models" ? ["first principal coordinate", "second ↑"] : ["along the first principal component", this.stretch > 1.05 ? `the second ↑, drawn ${written(this.stretch, 2)} times as long` : "the second ↑"];
    if (this.small) parts.push(shape("text", { x: x + width - 5, y: y + height - 6, "text-anchor": "end", class: "axis-name inner" }, path ? "first component →" : "u →"));
    else parts.push(shape("text", { x: x + width, y: y + height + 26, "text-anchor": "end", class: "axis-name" }, path ? along : "distance along u"));
    parts.push(shape("text", { x: x + 6, y: y + 14, class: "axis-name inner" }, path ? up : "v ↑"));
    this.corner = { x, y, width: 6 * up.length + 12, height: 20 }; // where the name of the second axis is
    this.axes.replaceChildren(...parts);
  }

  drawRelief() {
    this.mapped = null;
    this.axes.replaceChildren();
    const { fine, surface, scale, half } = this.shown;
    const share = ([low, high]) => [low / (2 * half), high / (2 * half)];
    this.stage.painter.paint(this.canvas, fine, { u: share(surface.u), v: share(surface.v) }, scale, this.stage.camera);
  }

  // The cursor of all pictures, and the ring at the point that was clicked.
  follow() {
    if (!this.shown || !this.shown.frame) return;
    const { surface, words, view, scale } = this.shown, hover = (ownPlane(view) ? view : "") === (ownPlane(this.stage.hoverView) ? this.stage.hoverView : "") ? this.stage.hover : null, parts = [];
    const point = ownPlane(view) ? null : this.stage.state.point, apart = hover && point ? Math.hypot(...this.seen(...hover).map((part, i) => part - this.seen(...point)[i])) : Infinity;
    for (const [spot, kind] of [[hover, "hover"], [point, "ring"]]) {
      if (!spot || !surface.inside(...spot)) continue;
      const [x, y] = this.seen(...spot);
      if (kind === "ring") parts.push(shape("circle", { cx: x, cy: y, r: 8, class: "ring halo" }), shape("circle", { cx: x, cy: y, r: 8, class: "ring" }));
      else parts.push(shape("path", { d: `M${x - 8} ${y}H${x + 8}M${x} ${y - 8}V${y + 8}`, class: "cross halo" }), shape("path", { d: `M${x - 8} ${y}H${x + 8}M${x} ${y - 8}V${y + 8}`, class: "cross" }));
    }
    this.cursor.replaceChildren(...parts);
    const still = apart < 2, spot = still ? point : hover || point, near = ownPlane(view) && hover ? this.marks.near(hover) : null;
    if (near) { this.reading.textContent = this.marks.wordsOf(near); return; }
    this.reading.textContent = !spot || surface.low === Infinity ? words.reading
      : surface.inside(...spot) ? `${scale.difference ? "difference of " : ""}${words.metric} at (${written(spot[0], 2)}, ${written(spot[1], 2)}): ${this.valueAt(spot, hover && !still)}`
        : `(${written(spot[0], 2)}, ${written(spot[1], 2)}) is beyond this plane`;
  }

  // The number at a place in words: exact at the clicked point, once that is evaluated, and interpolated elsewhere.
  valueAt(spot, hover) {
    const { surface, scale, run, other, at } = this.shown, { land } = this.stage, [own, base] = [run, other].map((one) => (hover || !one ? undefined : land.exactNumber(one, one === run ? at : land.frame(one))));
    const exact = other && own !== undefined ? (base === undefined || base === null || own === null ? undefined : own - base) : own;
    return `${land.inWords(exact === undefined ? surface.value(...spot) : exact, scale.difference ? signed : written)}${exact === undefined ? ", interpolated" : ", evaluated exactly"}`;
  }

  // Coordinates below a place on the screen; on a relief of the first surface point that the line of sight meets.
  under(event) {
    const box = this.over.getBoundingClientRect(), { half, view, surface, scale } = this.shown;
    const [px, py] = [((event.clientX - box.left) / box.width) * this.side, ((event.clientY - box.top) / box.height) * this.tall];
    if (view !== "relief") {
      const { x, y, width, height } = this.box, [right, up] = this.middle;
      return [right + ((px - x - width / 2) / this.extent) * 2 * half, up - ((py - y - height / 2) / (this.extent * this.stretch)) * 2 * half];
    }
    const { right, up } = this.stage.camera.axes, { tall } = this.stage.camera.look;
    const a = (2 * (px / this.side) - 1) / ZOOM, b = (1 - 2 * (py / this.side)) / ZOOM - 0.02;
    const det = right[0] * up[1] - right[1] * up[0];
    for (let step = 0; step <= 160; step++) {
      const z = tall / 2 - (step / 160) * tall, rest = b - z * up[2];
      const spot = [(a * up[1] - right[1] * rest) / det, (right[0] * rest - a * up[0]) / det].map((part) => part * 2 * half);
      const share = (surface.height(...spot) - scale.low) / (scale.high - scale.low);
      if (this.stage.camera.rise(share) >= z) return spot;
    }
    return null;
  }

  listen() {
    let from = null, moved = false;
    this.ground.addEventListener("pointerdown", (event) => { from = [event.clientX, event.clientY]; moved = false; });
    this.ground.addEventListener("pointermove", (event) => {
      if (from && this.shown.view === "relief" && event.buttons) {
        const [right, up] = [event.clientX - from[0], event.clientY - from[1]];
        if (moved || Math.hypot(right, up) > 4) {
          moved = true;
          from = [event.clientX, event.clientY];
          this.stage.camera.turn(right * 0.5, up * 0.4);
          this.stage.redraw();
        }
        return;
      }
      this.stage.point(this.under(event), this.shown.view);
    });
    this.ground.addEventListener("pointerleave", () => this.stage.point(null));
    this.ground.addEventListener("pointerup", () => { if (moved) this.stage.turned(); });
    this.ground.addEventListener("click", (event) => {
      const spot = moved ? null : this.under(event);
      if (!spot) return;
      if (!ownPlane(this.shown.view)) { if (this.shown.surface.inside(...spot)) this.stage.pickPoint(spot); return; }
      const near = this.marks.near(spot);
      if (near) this.marks.pick(near);
    });
    this.ground.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      if (ownPlane(this.shown.view)) { this.stage.player.step(step[0] + step[1]); return; }
      if (event.shiftKey && this.shown.view === "relief") { this.stage.camera.turn(step[0] * 10, step[1] * 6); this.stage.turned(); return; }
      const { surface, half } = this.shown, [u, v] = this.stage.state.point || [0, 0];
      const bound = (value, [low, high]) => Math.min(Math.max(value, low), high);
      this.stage.pickPoint([bound(u + (step[0] * half) / 25, surface.u), bound(v + (step[1] * half) / 25, surface.v)], true);
    });
  }
}

// A fine grid in colours, as a canvas of FINE x FINE pixels, v upwards.
function coloured(fine, { low, high, table }) {
  const canvas = make("canvas", { width: FINE, height: FINE }), pen = canvas.getContext("2d"), image = pen.createImageData(FINE, FINE);
  for (let y = 0; y < FINE; y++) {
    for (let x = 0; x < FINE; x++) {
      const value = fine[y * FINE + x], i = 4 * ((FINE - 1 - y) * FINE + x);
      if (Number.isNaN(value)) continue;
      const place = 3 * Math.min(255, Math.max(0, Math.round((255 * (value - low)) / (high - low || 1))));
      image.data.set([table[place], table[place + 1], table[place + 2], 255], i);
    }
  }
  pen.putImageData(image, 0, 0);
  return canvas;
}
