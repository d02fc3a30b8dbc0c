"""Recording of rounds that other programs train.

`recorder.Recorder` is the entry; numpy is enough for it.
"""
