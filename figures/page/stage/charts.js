// Drift and curvature: what figures of the gallery say of a run, as lines over rounds that can be clicked; the map of
// models takes its numbers from here too. Stored results are shown at once, others are computed on request.

const TALL = 96, RIM = { left: 50, right: 8, top: 6, bottom: 16 }; // px of a chart
const percent = (value, digits = 2) => `${written(100 * value, digits)} %`;
const largest = (lines, of) => lines.filter((one) => Number.isFinite(of(one))).sort((a, b) => of(b) - of(a))[0];

// By figure: its question; its charts (words, the variable `of` by label along `over`, or variables, as lines; `second` is
// drawn dashed beside it; level and alarm); and a sentence from its charts at a place of its rounds.
const CAUSES = { steps: "unequal steps", late: "old models", stopped: "clients that stop", partial: "parts not sent", sent: "changed updates", noise: "server noise" };
const DISPLACED = { client: "client drift", step: "server's step", random: "random directions" };
const DETECTORS = { coherence: "fall of the mean cosine of updates", rank: "fall of the log rank of updates", client: "log longest / second update", rate: "log global step / model", variances: "running variances below zero or huge", rise: "rise of the log loss", stall: "log lowest / first loss" };
const NEEDED = Object.fromEntries(Object.entries({ coherence: "three rounds of two clients that moved", rank: "three rounds of two clients that moved", client: "three clients that moved", rate: "a model that moved", variances: "batch normalisation in a recorded run", rise: "three test losses", stall: "three test losses in the first third" }).map(([name, words]) => [DETECTORS[name], words]));
const CHARTED = {
  "drift-curvature": { title: "Does drift lie in sharp directions?", charts: [
    { words: "share in the sharpest directions", of: "share", over: "kind", lines: DISPLACED },
    { words: "cost of the displacement; dashed: to second order", of: "cost", over: "kind", second: "quadratic", lines: DISPLACED },
    { words: "squared updates that the mean removes", lines: { removed_sharp: "in the sharpest directions", removed_rest: "in all others" } }],
  said: ([share], at, round, { k, undetermined }) => {
    const of = (words) => share.lines.find((line) => line.words === words)?.values[at] ?? null, client = of(DISPLACED.client), random = of(DISPLACED.random);
    return `${client === null ? `The share of round ${round} is not known.` : `${percent(client)} of the client drift of round ${round} lies in the ${k} sharpest directions of the loss${random === null ? "" : `, of a random displacement ${percent(random)}`}.`}${undetermined ? ` In round${undetermined.includes(",") ? "s" : ""} ${undetermined} these directions are not unique.` : ""}`;
  } },
  "noise-rounds": { title: "Noise or drift?", charts: [{ words: "share of the clients' updates; tinted: 95 %", of: "share", over: "part", lines: { signal: "signal", data: "difference of data", drift: "drift of local steps", noise: "minibatch noise" } }],
  said: ([share], at, round) => {
    const most = largest(share.lines, ({ values }) => values[at]), [low, high] = [most?.low, most?.high].map((ends) => (ends ? ends[at] : null));
    return most ? `The largest part of the updates of round ${round}: ${most.words}, ${percent(most.values[at])}${low === null || high === null ? "" : ` (95 %: ${percent(low)} to ${percent(high)})`}.` : `The parts of round ${round} are not known.`;
  } },
  "update-causes": { title: "What do unequal clients change?", charts: [{ words: "change of the mean update [% of its length]", lines: CAUSES, shows: (value) => value === null || value > 1e-3 }],
  said: ([changes]) => {
    const mean = ({ values }) => meanOf(values.filter((value) => value !== null)), most = largest(changes.lines, mean), unknown = changes.lines.filter(({ values }) => values.includes(null)).map(({ words }) => words);
    return [most ? `The largest change on average: ${most.words}, ${written(mean(most), 2)} % of the mean update.` : unknown.length ? "" : "No cause changes the mean update: the clients of this run are equal.", unknown.length ? `Not known in all rounds: ${unknown.join(", ")}.` : ""].filter(Boolean).join(" ");
  } },
  "product-gap": { title: "What do means of adapters lose?", charts: [{ words: "gap to the mean product [%]", lines: { relative: "of the mean product", of_step: "of the round's step" } }, { words: "server's distance to the mean product", lines: { missed: "distance" } }],
  said: ([{ lines: [gap] }], at, round) => (gap.values[at] === null ? `The gap of round ${round} is not known.` : `The mean of the products and the product of the means differ by ${written(gap.values[at], 2)} % in round ${round}.`) },
  "early-warning": { title: "Early warning", charts: Object.entries(DETECTORS).map(([name, words]) => ({ words, of: "statistic", over: "detector", lines: { [name]: "statistic" }, level: "limit", alarm: "first_alarm" })),
  said: (charts, at, round, attrs, rounds) => {
    const alarms = charts.filter(({ alarm }) => alarm !== null), silent = charts.filter(({ lines: [one], alarm }) => alarm === null && one.values.every((value) => value === null)).map(({ words }) => words);
    return `${alarms.length ? `Alarm: ${alarms.map(({ words, alarm }) => `${words}, round ${alarm}`).join("; ")}.` : "No alarm."} Watched: ${rounds.length ? `rounds ${rounds[0]} to ${rounds.at(-1)}` : "no round"}, the first third.${silent.length ? ` Not measured: ${silent.map((words) => `${words} (takes ${NEEDED[words]})`).join("; ")}.` : ""}`;
  } },
};
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#c08400", "#777777"];

// Charts of a figure's data: [{words, unit, lines, level, alarm}], a line with words, values, and low, high and second or null.
function chartsOf(figure, { values, units }) {
  return CHARTED[figure].charts.map(({ words, of, over, lines, second, level, alarm, shows = () => true }) => {
    const read = (name, label) => (values[name] === undefined || (of && !values[over].includes(label)) ? null : of ? values[name][values[over].indexOf(label)] : values[name]);
    const drawn = Object.entries(lines).map(([label, said]) => { const name = of || label; return { words: said, values: read(name, label), low: read(`${name}_low`, label), high: read(`${name}_high`, label), second: second ? read(second, label) : null }; });
    const [first] = Object.keys(lines);
    return { words, unit: units[of || first], lines: drawn.filter((line) => line.values && line.values.some(shows)), level: level ? read(level, first) : null, alarm: alarm ? read(alarm, first) : null };
  });
}

// The map of models from a figure's data, as the frame of a picture.
function modelsOf({ values, attrs }) {
  const marks = values.mark.map((name, i) => {
    const [, run, client, round] = /^(?:(.*): )?(?:client (\d+) of )?round (\d+)$/.exec(name), of = (column) => values[`mark_${column}`][i];
    return { name, kind: "model", run: run || attrs.run, round: Number(round), client: client === undefined ? null : Number(client), u: of("alpha"), v: of("beta"), basin: of("basin"), chosen: of("chosen") === 1, loss: of("loss") };
  }).filter(({ basin }) => basin !== null);
  const means = values.candidate.map((name, i) => ({ name, loss: values.judged_loss[i] })), taken = means.find(({ name }) => name === attrs.chosen);
  return { plane: null, marks, taken, last: means.find((one) => one.name.startsWith("aggregate")) || means.at(-1), barriers: values.basin_barrier, ...attrs, explained: attrs.explained_alpha + attrs.explained_beta, samples: `Losses of the models are on ${attrs.samples} ${attrs.split} samples, those of means on others.` };
}

// Rounds in words: rounds 3 to 9 where none between them is missing, else rounds 3, 5 and 9.
function inRounds(some) {
  const rounds = [...new Set(some)].sort((a, b) => a - b), first = rounds[0], last = rounds.at(-1);
  return rounds.length < 2 ? `round ${first}` : rounds.length > 2 && last - first === rounds.length - 1 ? `rounds ${first} to ${last}` : `rounds ${rounds.slice(0, -1).join(", ")} and ${last}`;
}

class Analyses {
  constructor(stage) {
    Object.assign(this, { stage, asked: new Map() }); // asked: what is to be computed, also while something else is looked at
    this.parts = new Map(Object.entries(CHARTED).map(([figure, { title }]) => {
      const body = make("div", {}), part = make("details", { "data-figure": figure, toggle: () => this.opened() }, make("summary", {}, title), body);
      return [figure, { part, body }];
    }));
    this.element = make("section", { class: "charts" }, make("h3", {}, "Drift and curvature"), ...[...this.parts.values()].map(({ part }) => part));
  }

  get open() { return this.stage.state.charts.split(",").filter(Boolean); }

  opened() {
    const open = [...this.parts].filter(([, { part }]) => part.open).map(([figure]) => figure).join();
    if (open !== this.open.sort((a, b) => [...this.parts.keys()].indexOf(a) - [...this.parts.keys()].indexOf(b)).join()) this.stage.set({ charts: open });
  }

  // What is known of a figure of runs: {value}, or {words, compute, cost, pending}.
  of(figure, runs) {
    const { stage } = this, { asks } = stage;
    if (!stage.link) {
      const known = figure === "model-map" ? stage.scene.models : runs[0].charts?.[figure];
      return known?.values ? { value: known } : { words: `This file has none. ${known || ""}`.trim() };
    }
    const names = runs.map((run) => stage.memberOf(run)), key = `${figure} ${names}`, args = { figure, runs: names, stored: !this.asked.has(key) }, entry = asks.want("charts", args);
    if (entry.value && !entry.value.absent) return { value: entry.value };
    const failed = entry.error && !args.stored, cancelled = /^It was cancelled\./.test(entry.error) && "It was cancelled, and does not begin again by itself.", compute = () => { asks.entries.delete(`charts ${JSON.stringify({ ...args, stored: false })}`); this.asked.set(key, { ...args, stored: false }); stage.render(); };
    return { words: (failed && cancelled) || entry.error || (entry.value ? "" : args.stored ? "Reading the results ..." : `${progressWords(entry.progress || { words: "Waiting to be computed" })} ...`), cost: entry.value?.cost, compute: (entry.value || failed) && compute, pending: entry.pending && !args.stored ? entry : null };
  }

  // A button that computes; null where there is nothing to compute.
  begin({ compute, cost }) { return compute ? button({ class: "compute", click: compute }, cost ? `Compute (${cost})` : "Compute again") : null; }

  // Rounds of alarms of a run, as events of the time line.
  alarms(run) {
    const { stage } = this;
    if (stage.link && (!run.rounds.length || run.state === "damaged" || !stage.land.ready(stage.state.round))) return [];
    const { value } = this.of("early-warning", [run]);
    return (value ? chartsOf("early-warning", value) : []).filter(({ alarm }) => alarm !== null).map(({ alarm, words }) => ({ round: alarm, words: `early warning: ${words} is above its limit, which 5 % of healthy runs exceed` }));
  }

  draw() {
    const { stage } = this, run = stage.looked;
    for (const args of this.asked.values()) stage.asks.want("charts", args);
    for (const [figure, { part, body }] of this.parts) {
      part.open = this.open.includes(figure);
      if (!part.open) continue;
      const known = run.rounds.length && run.state !== "damaged" ? this.of(figure, [run]) : { words: isGone(run) ? "This run is gone." : run.rounds.length ? "This run is damaged." : "This run has no complete round." }, { value, words } = known;
      if (!isNew(part, [value, words, known.cost, run.key, stage.memberOf(run), stage.state.round, body.clientWidth, stage.dark.matches])) continue;
      body.replaceChildren(...(value ? this.charts(figure, value, body.clientWidth || 280) : [words && make("p", { class: "small", role: "status" }, words), this.begin(known)].filter(Boolean)));
    }
  }

  charts(figure, value, width) {
    const { stage } = this, rounds = value.values.round, charts = chartsOf(figure, value), near = stage.land.nearest(stage.state.round, rounds), at = rounds.indexOf(near), said = CHARTED[figure].said(charts, at, near, value.attrs, rounds);
    const analysed = figure === "early-warning" ? "" : `Analysed: ${inRounds(rounds)}.`, beside = near === stage.state.round ? "" : `Round ${near} is the nearest of them to round ${stage.state.round}, which is on the stage.`;
    const drawn = charts.filter(({ lines }) => lines.some(({ values }) => values.some((value) => value !== null)));
    const more = stage.gallery && button({ click: () => stage.gallery.open(figure) }, `Figure ${figure}`);
    return [make("p", { class: "small said" }, [said, analysed, beside].filter(Boolean).join(" ")), ...drawn.map((chart) => this.chart(chart, rounds, at, width)), more].filter(Boolean);
  }

  // One chart: a click or an arrow key leads to a round.
  chart({ words, unit, lines, level, alarm }, rounds, at, width) {
    const { stage } = this, first = rounds[0], last = rounds.at(-1), share = unit === "fraction", shade = (i) => shadeOf(COLOURS[i % COLOURS.length], stage.dark.matches);
    const known = [...lines.flatMap((line) => [line.values, line.low || [], line.high || [], line.second || []]).flat(), level].filter(Number.isFinite), [low, high] = [Math.min(...known), Math.max(...known)];
    const x = (round) => RIM.left + (last > first ? (round - first) / (last - first) : 0.5) * (width - RIM.left - RIM.right), y = (value) => RIM.top + (1 - (value - low) / (high - low || 1)) * (TALL - RIM.top - RIM.bottom);
    const text = (value) => written(share ? 100 * value : value, 2).replace("-", "−") + (share ? " %" : ""), place = (values) => rounds.map((round, i) => [x(round), values[i] === null ? NaN : y(values[i])]);
    const parts = [shape("rect", { x: RIM.left, y: RIM.top, width: Math.max(width - RIM.left - RIM.right, 0), height: TALL - RIM.top - RIM.bottom, class: "band" })];
    for (const [value, down] of [[high, 9], [low, 0]].slice(text(high) === text(low) ? 1 : 0)) parts.push(shape("text", { x: RIM.left - 4, y: y(value) + down, "text-anchor": "end", class: "tick" }, text(value)));
    for (const round of new Set([first, last])) parts.push(shape("text", { x: x(round), y: TALL - 3, "text-anchor": "middle", class: "tick" }, String(round)));
    if (level !== null) parts.push(shape("line", { x1: RIM.left, x2: width - RIM.right, y1: y(level), y2: y(level), class: "level" }, shape("title", {}, `limit ${text(level)}`)));
    lines.forEach((line, i) => {
      const ends = line.low && [...place(line.low), ...place(line.high).reverse()].filter(([, down]) => Number.isFinite(down));
      if (ends) parts.push(shape("path", { d: `${pathOf(ends)}Z`, fill: shade(i), class: "spread", opacity: 0.18 }));
      for (const [values, dashes] of [[line.values, null], [line.second || [], "4 3"]]) parts.push(shape("path", { d: values.length ? pathOf(place(values)) : "", fill: "none", stroke: shade(i), "stroke-width": 1.8, "stroke-dasharray": dashes }));
      place(line.values).filter(([, down]) => Number.isFinite(down)).forEach(([right, down]) => parts.push(shape("circle", { cx: right, cy: down, r: rounds.length > 40 ? 1.2 : 2.4, fill: shade(i) })));
    });
    if (alarm !== null) parts.push(shape("line", { x1: x(alarm), x2: x(alarm), y1: RIM.top, y2: TALL - RIM.bottom, class: "alarm" }, shape("title", {}, `first alarm: round ${alarm}`)));
    parts.push(shape("line", { x1: x(rounds[at]), x2: x(rounds[at]), y1: RIM.top - 3, y2: TALL - RIM.bottom + 3, class: "handle" }));
    const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }, go = (round, how) => stage.line.goTo(round, how);
    const click = ({ clientX, currentTarget }) => { const box = currentTarget.getBoundingClientRect(), right = ((clientX - box.left) / box.width) * width; go(rounds.reduce((a, b) => (Math.abs(x(b) - right) < Math.abs(x(a) - right) ? b : a))); };
    const keydown = (event) => { const to = rounds[at + step[event.key]]; if (!step[event.key]) return; event.preventDefault(); event.stopPropagation(); if (to !== undefined) go(to, { gesture: stage.player.keys() }); };
    const present = (values) => (values[at] === null ? "not known" : text(values[at])), told = lines.map(({ words: name, values, second }) => `${name} ${present(values)}${second ? `, to second order ${present(second)}` : ""}`);
    const drawing = shape("svg", { viewBox: `0 0 ${width} ${TALL}`, height: TALL, tabindex: 0, role: "slider", "aria-label": `Round on the stage, in the chart of ${words}`, "aria-valuemin": first, "aria-valuemax": last, "aria-valuenow": rounds[at], "aria-valuetext": `round ${rounds[at]}: ${told.join(", ")}`, click, keydown }, ...parts);
    const key = lines.map((line, i) => make("li", {}, swatch({ shade: shade(i), dash: [] }, 18), `${told[i]}${line.low && Number.isFinite(line.low[at]) ? ` [${text(line.low[at])}, ${text(line.high[at])}]` : ""}`));
    if (level !== null) key.push(make("li", {}, `limit, dashed: ${text(level)}`));
    return make("figure", { class: "chart" }, make("figcaption", { class: "small" }, `${words}${["1", "fraction", ""].includes(unit) ? "" : ` [${unit}]`}, round ${rounds[at]}`), drawing, make("ul", { class: "small" }, ...key));
  }
}
