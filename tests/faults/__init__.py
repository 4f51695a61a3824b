"""The fault campaigns: rows of the fault table as functions of a count.

`make faults` runs them with the counts of the table and writes docs/results/faults.md; `test_short.py` runs them with
small counts.
"""
