// The figures of the gallery below the stage, by the question that they answer; the server draws them for the runs on the stage.

class Gallery {
  constructor(stage) {
    this.stage = stage;
    this.singles = new Set(); // figures that show one run
    this.list = make("div", { class: "figure-list" });
    this.shown = make("div", { class: "figure-shown", hidden: true });
    this.element = make("section", { id: stage.id("figures"), class: "stage-figures", "aria-label": "Figures" }, make("h2", {}, "Figures"), make("p", { class: "small" }, "Each figure is drawn for the runs on the stage, as fedscape figures draw does it."), this.shown, this.list);
  }

  open(figure) { this.stage.set({ figure, options: {} }); this.element.scrollIntoView({ behavior: this.stage.calm.matches ? "auto" : "smooth" }); }

  draw() {
    const { stage } = this, entry = stage.asks.want("figures", {});
    if (!entry.value) { this.list.textContent = entry.error || ""; return; }
    if (!this.buttons) {
      this.buttons = new Map();
      const questions = [...new Set(entry.value.map((one) => one.question))];
      this.list.replaceChildren(...questions.map((question) => make("section", {}, make("h3", {}, question), make("ul", {}, ...entry.value.filter((one) => one.question === question).map((one) => {
        this.buttons.set(one.name, button({ title: [one.needs, one.cost].filter((text) => typeof text === "string").join(" · "), click: () => this.open(one.name) }, make("b", {}, one.name), make("span", {}, one.shows)));
        return make("li", {}, this.buttons.get(one.name));
      })))));
      oneStop(this.list, "button");
    }
    if (stage.state.figure && !this.buttons.has(stage.state.figure)) {
      stage.say(`${stage.notice} There is no figure ${stage.state.figure.slice(0, 60)} here; those that there are stand below.`.trim());
      stage.state.figure = "";
      stage.write(true);
    }
    const { figure, options } = stage.state;
    for (const [name, one] of this.buttons) one.setAttribute("aria-pressed", String(name === figure));
    this.shown.hidden = !figure;
    if (!figure) return;
    const all = stage.shown.map((run) => stage.memberOf(run)), draw = (some) => stage.asks.want("draw", { figure, runs: some, options, format: "svg" });
    if (all.length > 1 && !this.singles.has(figure) && /shows one run/.test(draw(all).error || "")) this.singles.add(figure);
    const single = all.length > 1 && this.singles.has(figure) ? `It shows one run: ${stage.looked.label}, the one looked at.` : "", runs = single ? [stage.memberOf(stage.looked)] : all, drawn = draw(runs);
    const about = entry.value.find((one) => one.name === figure);
    if (!isNew(this, [figure, runs, options, Boolean(drawn.value), drawn.error, drawn.progress])) return;
    const close = button({ class: "plain", "aria-label": "Close the figure", click: () => stage.set({ figure: "", options: {} }) }, "×");
    const head = make("h3", {}, figure, close), shows = about && make("p", { class: "small" }, about.shows);
    if (!drawn.value) { this.shown.replaceChildren(head, shows || "", make("p", { role: "status" }, drawn.error || progressWords(drawn.progress || { words: "Drawing" }) + " ...")); return; }
    const { svg, alt, caption, command, python } = drawn.value;
    const copy = (text, words) => make("div", { class: "code" }, make("pre", { tabindex: 0 }, text), button({ "aria-label": `Copy ${words}`, click: async (event) => { await navigator.clipboard.writeText(text); event.target.textContent = "Copied"; } }, "Copy"));
    const files = ["svg", "pdf", "png", "csv"].map((format) => button({ click: (event) => this.save(event.target, { figure, runs, options, format }) }, format.toUpperCase()));
    this.shown.replaceChildren(head, make("img", { src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`, alt: alt || figure, load: ({ target }) => target.style.setProperty("--ratio", target.naturalWidth / target.naturalHeight) }), make("p", { class: "small" }, [single, caption].filter(Boolean).join(" ")), make("div", { class: "row" }, ...files), copy(command, "the command line"), copy(python, "the Python lines"));
  }

  async save(clicked, args) {
    const text = clicked.textContent;
    clicked.disabled = true;
    try {
      const { svg, base64, name } = await this.stage.link.ask("draw", args);
      download(name, svg ?? new Blob([bytesOf(base64)]), "image/svg+xml");
    } catch (reason) { clicked.title = String(reason.message || reason); }
    Object.assign(clicked, { disabled: false, textContent: text });
  }
}
