"""Files of a run: rounds, state, digests, locks and compression; every write is atomic.

`files` reads and writes them; `round_record.Round` is the content of a round.
"""
