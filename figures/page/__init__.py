"""The report: one self-contained page about several runs.

`report.report` writes it; each file makes one part of its content.
"""
