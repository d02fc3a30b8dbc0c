// What a server is asked: answers by question. A question that no part of the page has any more is cancelled.
//
// link: as link.js has it; in a file the networks that it carries (network.js), which answer what they can.

const REMEMBERED = 150; // answers

class Asks {
  // changed: called when an answer arrives; moved: when a question's progress does.
  constructor(link, changed, moved) { Object.assign(this, { link, changed, moved, entries: new Map(), wanted: new Set(), lost: false, turn: 0 }); }

  // The present answer to a question, asked now where it was not: {value, rough, error, progress, pending}.
  want(kind, args) {
    const key = `${kind} ${JSON.stringify(args)}`, known = this.entries.get(key);
    this.wanted.add(key);
    if (known) this.entries.delete(key);
    if (known && (known.pending || !known.old)) { this.entries.set(key, known); known.turn = this.turn; return known; }
    const entry = { kind, args, turn: this.turn, begun: performance.now(), pending: true, value: known ? known.value : undefined }; // an old answer stays until the new one is there
    this.entries.set(key, entry);
    this.start(key, entry);
    return entry;
  }

  start(key, entry) {
    const present = () => this.entries.get(key) === entry;
    const answer = (changes) => { if (present()) { Object.assign(entry, changes); this.changed(entry.kind); } };
    entry.promise = this.link.ask(entry.kind, entry.args, { onProgress: (progress) => { if (present()) { entry.progress = progress; this.moved(entry); } }, onRough: (rough) => answer({ rough }) });
    entry.promise.then((value) => answer({ value, pending: false, rough: null }), (reason) => {
      if (!present() || this.lost) return; // it is asked again once there is a connection
      answer({ error: String(reason && reason.message ? reason.message : reason), pending: false });
    });
  }

  // Forgets a question; it is cancelled where it is under way.
  end(key, { promise }) {
    this.entries.delete(key);
    if (promise.cancel) promise.cancel();
  }

  // Ends what was asked and is not wanted since the last call; forgets errors of which this drawing shows none, and the
  // oldest answers.
  sweep() {
    for (const [key, entry] of this.entries) {
      if (entry.error ? entry.turn === this.turn : !entry.pending || this.wanted.has(key)) continue;
      this.end(key, entry);
    }
    for (const key of [...this.entries.keys()].slice(0, Math.max(this.entries.size - REMEMBERED, 0))) if (!this.wanted.has(key)) this.entries.delete(key);
    this.wanted.clear();
  }

  // Errors and questions about runs that changed are asked anew, what takes long once the runs have other rounds and do not grow
  // any more. What is under way is waited for first.
  forget(runs) {
    const namesOf = (some) => new Set(some.flatMap((run) => (run.names || []).map(({ name }) => name))), all = namesOf(runs), settled = namesOf(runs.filter((run) => run.state !== "growing" && run.grown));
    for (const run of runs) run.grown &&= run.state === "growing";
    for (const [key, entry] of this.entries) {
      const names = { path: all, series: all, numbers: all, diagnosis: settled, draw: settled, charts: settled }[entry.kind];
      if (entry.error) this.entries.delete(key);
      else if (names && aboutOf(entry).some((name) => names.has(name))) entry.old = true;
    }
  }

  // Forgets all that is about runs of these names.
  drop(names) {
    for (const [key, entry] of [...this.entries]) if (aboutOf(entry).some((name) => names.has(name))) this.end(key, entry);
  }

  // After a lost connection: what was under way is asked again.
  again() {
    this.lost = false;
    for (const [key, entry] of [...this.entries]) if (entry.pending || entry.error) this.end(key, entry);
    this.changed();
  }
}

const aboutOf = ({ args }) => [args.run, ...(args.runs || [])]; // names of the runs that a question is about

// How far something is, in words.
function progressWords({ done, total, left, words } = {}) {
  const parts = [total > 1 ? `${Math.floor((100 * done) / total)} %` : "", left ? `${left < 1 ? "less than 1" : written(left, 2)} s left` : ""].filter(Boolean);
  return [words || "", parts.join(", ")].filter(Boolean).join(": ");
}
