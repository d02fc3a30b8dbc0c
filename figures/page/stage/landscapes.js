// What a picture shows of a run: the frame of a round, its surface, a difference, a path; from the scene or a server.

const isGone = ({ state, note }) => state === "damaged" && /^run \S+ is gone: /.test(note); // its folder was deleted

// How long it took to open the runs, or the first map of one, in this browser: the next time that is said meanwhile.
function tookOf(key, begun) {
  const seconds = (performance.now() - begun) / 1000;
  if (seconds > 1) { try { localStorage.setItem(`fedscape ${key}`, String(Math.round(seconds))); } catch { /* a frame without a memory */ } }
}
function lastTime(key) {
  let seconds = null;
  try { seconds = localStorage.getItem(`fedscape ${key}`); } catch { /* a frame without a memory */ }
  return /^\d+$/.test(seconds ?? "") ? `, about ${seconds} s as last time` : "";
}

class Landscapes {
  constructor(stage) { this.stage = stage; this.surfaces_ = new WeakMap(); this.last = new Map(); this.identities = new Map(); this.timed = new Set(); this.newest = new Map(); }

  // Rounds of a run that have or can have a landscape.
  rounds(run) {
    const shown = Object.keys(run.shown || {}).filter((round) => typeof run.shown[round] !== "string").map(Number);
    return [...new Set([...shown, ...(this.stage.link ? run.able || [] : [])])].sort((a, b) => a - b);
  }

  // The same, of a run whose rounds have maps: those of fewer than three clients have all but that.
  mapped(run) { return run.maps === false ? [] : this.rounds(run); }

  // A round that is not there, in words: a landscape of it where runs have some, by their keys.
  nothing(round, keys) { return this.stage.runs.some((run) => keys.includes(run.key) && this.mapped(run).length) ? `landscape of round ${round}` : `round ${round} to show`; }

  // That a round has no landscape, and why.
  lacks(round) { return this.stage.link ? `Round ${round} has no landscape: its clients were not kept.` : `This file has no ${this.nothing(round, this.stage.state.runs)}.`; }

  // Says which runs are gone since the last call, and no longer once they are back.
  gone(entries) {
    const { stage } = this, before = new Set(stage.runs.filter(isGone).map(({ key }) => key)), gone = entries.filter((entry) => isGone(entry) && !before.has(entry.key)), [first] = gone;
    if (first) stage.notice = `${first.note.replace(/^r/, "R")}${gone.length > 1 ? ` ${gone.length - 1} more ${gone.length > 2 ? "runs are" : "run is"} gone too.` : ""}`;
    else if (entries.some((entry) => before.has(entry.key) && !isGone(entry))) stage.notice = "";
  }

  // Forgets what was shown of runs that other runs took the place of, under their names; says of which.
  replaced(entries) {
    const { stage } = this, names = new Set();
    for (const { names: members, identities = [] } of entries) identities.forEach((identity, i) => {
      const { name } = members[i], before = this.identities.get(name);
      this.identities.set(name, identity);
      if (before !== undefined && before !== identity) names.add(name);
    });
    if (!names.size) return;
    stage.asks.drop(names);
    const { state, why } = stage, runs = stage.runs.filter((run) => run.names.some(({ name }) => names.has(name)));
    for (const { key } of runs) this.last.delete(key);
    if (state.mix && runs.some((run) => run.key === state.mix.run)) state.mix = null;
    if (why) { why.weights.mark = ""; why.samples.value = null; }
    stage.notice = `${[...names].join(" and ")} was replaced by another run: all that is shown is of the new one.`;
  }

  // Rounds of some runs, by their keys.
  common(keys) { return [...new Set(this.stage.runs.filter((run) => keys.includes(run.key)).flatMap((run) => this.rounds(run)))].sort((a, b) => a - b); }

  // The same; where there are none, the rounds that were recorded.
  held(keys) { const rounds = this.common(keys); return rounds.length ? rounds : [...new Set(this.stage.runs.filter((run) => keys.includes(run.key)).flatMap((run) => run.rounds))].sort((a, b) => a - b); }

  // First and last round of some runs, by their keys; of all runs where these have none, and 0 until one is read.
  ends(keys = []) {
    const { runs } = this.stage, some = runs.filter((run) => keys.includes(run.key) && (run.rounds.length || run.able?.length)), of = some.length ? some : runs, firsts = of.flatMap((run) => run.rounds.slice(0, 1));
    return [firsts.length ? Math.min(...firsts) : 0, Math.max(0, ...of.map((run) => Math.max(run.rounds.at(-1) ?? 0, run.able?.at(-1) ?? 0)))];
  }

  nearest(round, rounds, otherwise = round) { return rounds.length ? rounds.reduce((a, b) => (Math.abs(b - round) < Math.abs(a - round) ? b : a)) : otherwise; }

  question(run, round) {
    const { points, samples, split, metric } = this.stage.state;
    return { run: this.stage.memberOf(run), round, points, samples, split, quantity: metric.startsWith("class") ? metric : "loss" };
  }

  // The frame of a run in a round, of the nearest one where that has none: {frame, round, absent, stale, rough, pending, coming}. Of a run that has not grown
  // to that round it is the newest whole one, until a newer one is whole.
  frame(run, wanted = this.stage.state.round) {
    const rounds = this.rounds(run), last = this.nearest(wanted, rounds, null), { newest } = this;
    if (run.state !== "growing" || last === null || last >= wanted) { if (wanted === this.stage.state.round) newest.delete(run.key); return this.at(run, last, wanted); }
    if (!rounds.includes(newest.get(run.key))) newest.set(run.key, last);
    const round = newest.get(run.key), at = this.at(run, round, wanted), next = round === last || at.pending ? at : this.at(run, last, wanted);
    if (!next.pending) newest.set(run.key, last);
    return next.pending && next !== at ? { ...at, coming: last } : next;
  }

  at(run, round, wanted) {
    if (round === null) return { frame: null, round, absent: (isGone(run) ? `No landscape: ${run.note}` : run.state === "damaged" ? `No landscape, because this run is damaged: ${run.note}` : run.note) || Object.values(run.shown || {})[0] || "This run has no landscape." };
    if (run.damaged && run.damaged[round]) return { frame: null, round, absent: run.damaged[round] };
    if (!this.stage.link && typeof run.shown[wanted] === "string") return { frame: null, round: wanted, absent: run.shown[wanted] };
    if (!this.stage.link || (run.shown[round] && this.plain(run))) return { frame: run.shown[round], round };
    const entry = this.stage.asks.want("landscape", this.question(run, round)), frame = entry.value || entry.rough;
    if (frame) {
      if (!this.timed.has(run.key)) { this.timed.add(run.key); tookOf(run.key, entry.begun); }
      if (wanted === this.stage.state.round) this.last.set(run.key, { frame, round }); // not what is asked for ahead
      return { frame, round, rough: !entry.value, pending: entry.pending ? entry : null };
    }
    if (entry.error) return { frame: null, round, absent: entry.error };
    const old = this.last.get(run.key);
    return old ? { ...old, stale: true, coming: round, pending: entry } : { frame: null, round, pending: entry, absent: `Computing the map of round ${round}: ${this.stage.state.points} x ${this.stage.state.points} models${lastTime(run.key)} ...` };
  }

  // Whether the landscape asked for is the one that a scene has.
  plain(run) {
    const { state } = this.stage;
    return ["points", "samples", "split"].every((name) => state[name] === PLAIN[name]) && !state.metric.startsWith("class") && !state.seeds[run.key];
  }

  // Whether the landscapes of a round are there; asks for those that are not.
  ready(round) { return this.stage.shown.map((run) => this.frame(run, round)).every(({ pending, stale }) => !pending && !stale); }

  // Asks for the landscapes of the next round, or of the one that is followed to, one after the other, while those of the present one are looked at.
  ahead() {
    const { state, rounds, shown, link, player } = this.stage, next = state.follow ? player.coming : rounds[rounds.indexOf(state.round) + 1];
    if (link && next !== undefined && (state.follow || !ownPlane(state.view)) && this.ready(state.round)) shown.find((run) => this.rounds(run).includes(next) && this.frame(run, next).pending);
  }

  surface(run, wanted) {
    const { frame } = this.frame(run, wanted);
    return frame ? this.surfaceIn(frame, this.stage.state.metric) : null;
  }

  surfaceIn(frame, metric) {
    if (!frame.plane && frame.cohort) return null; // of a round with fewer than three clients
    if (!frame.plane) return this.remember(frame, "blank", () => new Blank(frame.marks)); // a path whose map is not there
    if (!frame.plane.metrics[metric]) return null;
    return this.remember(frame, metric, () => new Surface(frame.plane, metric));
  }

  // What was computed from an object, as long as that lives.
  remember(owner, key, compute) {
    if (!this.surfaces_.has(owner)) this.surfaces_.set(owner, new Map());
    const values = this.surfaces_.get(owner);
    if (!values.has(key)) values.set(key, compute());
    return values.get(key);
  }

  // The surfaces of a round on the stage: [{run, other, surface, at}], where `other` is subtracted.
  surfaces(round) {
    const { view, look, metric } = this.stage.state, base = this.stage.looked;
    if (view === "models") { const at = this.models(), run = this.stage.looked; return [{ run, other: null, at, surface: at.frame ? this.surfaceIn(at.frame, "loss") : null }]; }
    if (view === "path") return this.stage.shown.map((run) => { const at = this.path(run); return { run, other: null, at, surface: at.frame ? this.surfaceIn(at.frame, "loss") : null }; });
    return this.stage.shown.map((run) => {
      const at = this.frame(run, round), surface = at.frame ? this.surfaceIn(at.frame, metric) : null, against = this.surface(base, round);
      if (view !== "difference" || run.key === look || !surface || !against) return { run, other: null, surface, at };
      const apart = this.unlike(run, base, round);
      if (apart) return { run, other: null, surface: null, at: { ...at, frame: null, absent: apart } };
      return { run, other: base, at, surface: this.remember(surface, against, () => new Difference(surface, against)) };
    });
  }

  // That losses of runs are of different samples, so that none lies lower; empty where they are of the same: [{run, of}].
  apart(some) { return new Set(some.map(({ of }) => of)).size > 1 ? `${some.map(({ run }) => this.stage.named(run)).join(" and ")} are evaluated on different samples: they cannot be compared.` : ""; }

  // Whether numbers of some runs are of other data, or those of their landscapes of other samples: [{run, at}], at without frame where it has none.
  mixed(some) {
    const exact = some.filter(({ at }) => at?.frame?.parts && !at.stale && !at.rough);
    return new Set(some.map(({ run }) => run.data)).size > 1 || Boolean(this.apart(exact.map(({ run, at }) => ({ run, of: at.frame.parts.of }))));
  }

  // The same of the landscapes of two runs; empty until both are there.
  unlike(run, other, round) {
    const both = [run, other].map((one) => ({ run: one, at: this.frame(one, round) })), [a, b] = both.map(({ at }) => at);
    return !a.frame || !b.frame || a.stale || b.stale || Boolean(a.rough) !== Boolean(b.rough) ? "" : this.apart(both.map((one) => ({ run: one.run, of: one.at.frame.parts.of })));
  }

  // Why there is no difference to show; empty where there is one, or may be.
  get noDifference() {
    const { shown, looked } = this.stage, reasons = shown.filter((run) => run !== looked).map((run) => this.unlike(run, looked));
    return reasons.length ? (reasons.every(Boolean) ? reasons[0] : "") : "tick a second run to compare";
  }

  // The global models of a run on a plane of their own.
  path(run) {
    if (!run.rounds.length && run.note) return { frame: null, round: null, absent: run.note };
    if (!this.stage.link) return run.path.plane ? { frame: run.path, round: this.stage.state.round } : { frame: null, round: null, absent: run.path };
    const { points, samples } = this.stage.state, entry = this.stage.asks.want("path", { run: this.stage.memberOf(run), points: Math.max(points, 21), samples }), frame = entry.value || entry.rough;
    const { error = frame ? "" : "Reading the global models ..." } = entry, round = frame ? this.stage.state.round : null;
    return { frame: frame || null, round, rough: !entry.value, pending: entry.pending ? entry : null, absent: error };
  }

  // The kept models of the runs on the stage as points of one map.
  models() {
    const { charts } = this.stage.why, { value, words, pending, ...more } = charts.of("model-map", this.stage.shown);
    return { frame: value ? this.remember(value, "models", () => modelsOf(value)) : null, round: this.stage.state.round, pending, absent: words || "How near are the last kept models of these runs, and which of them share a basin?", act: charts.begin(more) };
  }

  // One range of colours and one extent for all pictures of a round.
  shared(surfaces) {
    const range = (some) => [Math.min(...some.map((one) => one.low)), Math.max(...some.map((one) => one.high))];
    const able = surfaces.filter(({ surface }) => surface && !surface.empty), half = ({ u, v }) => Math.max((u[1] - u[0]) / 2, (v[1] - v[0]) / 2);
    const values = able.filter(({ other }) => !other).map(({ surface }) => surface), differences = able.filter(({ other }) => other).map(({ surface }) => surface);
    const extents = values.map(({ u, v }) => Math.max(...[...u, ...v].map(Math.abs))), marks = able.flatMap(({ at }) => at.frame.marks.flatMap(({ u, v }) => [u, v].map(Math.abs)));
    const whole = Math.min(Math.max(...extents), Math.max(Math.min(...extents), 1.15 * Math.max(...marks))); // holds all models, and no more of the wider planes
    const each = surfaces.map(({ surface }) => (surface && !surface.empty ? (ownPlane(this.stage.state.view) ? half(surface) : Math.max(...[...surface.u, ...surface.v].map(Math.abs))) : 1));
    return { half: Number.isFinite(whole) ? whole : 1, each, value: range(values), difference: range(differences) };
  }

  // The exact answer for the clicked point in the landscape of a run; {} where it cannot be asked.
  exact(run, at) {
    const { point: spot, split, samples } = this.stage.state, surface = at.frame && this.surfaceIn(at.frame, this.stage.state.metric);
    const able = this.stage.link || (at.frame && this.stage.networks.has(run, at.round));
    return able && surface && spot && !at.stale && surface.inside(...spot) ? this.stage.asks.want("point", { run: this.stage.memberOf(run), round: at.round, spot, split, samples }) : {};
  }

  // Its number on the map; undefined until it is there.
  exactNumber(run, at) {
    const { value } = this.exact(run, at), { metric } = this.stage.state;
    return value && (metric === "loss" ? value.loss : metric === "error" ? value.error : value.class_error[Number(metric.slice(6))] ?? null);
  }

  // A number of the map in words: errors are fractions, written in percent.
  get percent() { const { view, metric } = this.stage.state; return !ownPlane(view) && metric !== "loss"; }
  inWords(value, write = written) { return this.percent && value !== null ? `${write(100 * value, DIGITS)} %` : write(value, DIGITS); }

  // Weights of the three clients of a plane at a place on it: [[id, weight]], which sum to 1; null where they are on a line.
  weights(frame, [u, v]) {
    const corners = frame.through.map((id) => frame.marks.find((mark) => mark.name === `client ${id}`));
    if (!corners.length || corners.some((mark) => !mark)) return null;
    const [a, b, c] = corners, det = (b.v - c.v) * (a.u - c.u) + (c.u - b.u) * (a.v - c.v);
    if (Math.abs(det) < 1e-12) return null;
    const first = ((b.v - c.v) * (u - c.u) + (c.u - b.u) * (v - c.v)) / det, second = ((c.v - a.v) * (u - c.u) + (a.u - c.u) * (v - c.v)) / det;
    return frame.through.map((id, i) => [id, [first, second, 1 - first - second][i]]);
  }
}
