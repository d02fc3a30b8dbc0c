"""Files of a run: rounds, state, digests, locks, compression; whole or not there at all.

`files` reads and writes them; `round_record.Round` is what a round holds.
"""

from landscape import earlier

__getattr__ = earlier.moved_names(__name__, "drift.store.files")
