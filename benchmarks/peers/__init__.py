"""Rivals, measured beside us in the same run where they are installed: ``pip install --group peers``.

Each is one module: how it is installed in a database, how it enqueues, and a worker to run as ``python -m``.
"""
