// From round to round: steps, a gradual change of the landscapes, and play.

const TWEEN = 450, PAUSE = 250, BURST = 1000; // ms from one round to the next, that a round is shown while rounds are played, and between two keys of one gesture

class Player {
  constructor(stage) { this.stage = stage; this.playing = false; }

  step(by) {
    const { rounds, state } = this.stage, at = rounds.indexOf(state.round);
    if (rounds.length) this.goTo(rounds[Math.min(Math.max(at + by, 0), rounds.length - 1)], { gesture: this.keys() });
  }

  // The keys that follow one another without a pause, as one gesture.
  keys() { return (this.burst = (performance.now() - this.pressed < BURST && this.burst) || {}); }

  // Shows a round; landscapes that are there change gradually, unless the reader has asked for less motion. A gesture is one entry of the browser: what
  // it changes first is a new one, what it changes then takes the place of that, unless another change came between. Without one, no entry is made.
  goTo(round, { drag = false, then = null, changes = {}, gesture = {} } = {}) {
    const { stage } = this, from = stage.state.round;
    if (round === from) return;
    const follow = stage.state.follow && round === this.latest();
    cancelAnimationFrame(this.moving);
    stage.tween = null;
    const replace = !gesture || (gesture === this.gesture && this.entry === stage.written), show = () => { stage.set({ round, follow, ...changes }, { replace }); Object.assign(this, { gesture, entry: stage.written, pressed: performance.now() }); };
    if (stage.calm.matches || drag || ownPlane(stage.state.view) || !stage.land.ready(round)) { show(); if (then) then(); return; }
    stage.tween = { from, share: 0 };
    show();
    const begun = performance.now();
    const frame = (now) => {
      const share = Math.min((now - begun) / TWEEN, 1);
      stage.tween = share < 1 ? { from, share: share * share * (3 - 2 * share) } : null;
      stage.hall.draw();
      stage.line.move(from + (round - from) * (stage.tween ? stage.tween.share : 1));
      if (share < 1) this.moving = requestAnimationFrame(frame);
      else if (then) then();
    };
    this.moving = requestAnimationFrame(frame);
  }

  // The last round of the run that is followed: one that grows, the one looked at first; else the one that grew last, or is looked at.
  latest({ runs, look } = this.stage.state) {
    const { stage } = this, shown = stage.runs.filter(({ key }) => runs.includes(key)), looked = shown.find(({ key }) => key === look), grows = [looked, ...shown].find((run) => run?.state === "growing");
    if (grows) this.grew = grows.key;
    const followed = grows || shown.find(({ key }) => key === this.grew) || looked;
    return followed && stage.land.rounds(followed).at(-1);
  }

  // Goes to the last round where that is followed, once its landscapes are there. One that is under way is not given up for a newer one.
  catchUp() {
    const { state, land, rounds } = this.stage;
    if (!state.follow) { this.coming = undefined; return; }
    const last = this.latest() ?? state.round, beyond = state.round > last; // it has no such round: another run has
    if (!beyond && !land.ready(state.round)) return;
    if (beyond || !rounds.includes(this.coming) || this.coming === state.round) this.coming = last;
    if (this.coming !== state.round && (beyond || land.ready(this.coming))) this.goTo(this.coming, { changes: { follow: true }, gesture: null });
  }

  toggle() {
    if (this.playing) return this.stop();
    const { stage } = this, { rounds } = stage;
    if (rounds.length < 2) return;
    this.playing = true;
    this.play = {};
    this.show();
    if (rounds.indexOf(stage.state.round) === rounds.length - 1) this.goTo(rounds[0], { drag: true, gesture: this.play });
    this.waiting = setTimeout(() => this.next(), PAUSE);
  }

  // The next round, once its landscapes are there; they are asked for while the present ones are looked at.
  next() {
    if (!this.playing) return;
    const { stage } = this, { rounds } = stage, at = rounds.indexOf(stage.state.round);
    if (at < 0 || at === rounds.length - 1) return this.stop();
    if (!stage.land.ready(rounds[at + 1])) { stage.render(); this.waiting = setTimeout(() => this.next(), PAUSE); return; }
    this.goTo(rounds[at + 1], { gesture: this.play, then: () => { this.waiting = setTimeout(() => this.next(), PAUSE); } });
  }

  stop() { this.playing = false; clearTimeout(this.waiting); this.show(); }
  show() {
    this.stage.line.play.textContent = this.playing ? "❚❚ Pause" : "▶ Play";
    this.stage.line.play.setAttribute("aria-pressed", String(this.playing));
  }
}
