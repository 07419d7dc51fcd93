"""How fast the jobs are, side by side with the least that the same database would have to do.

``python -m benchmarks`` (or ``make bench``) runs the modules of ``benchmarks.measurements``; each says in its
docstring what it compares. ``docs/benchmarks.md`` explains how to read the figures.
"""
