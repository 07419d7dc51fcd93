"""The faults, by what they strike. Each is a function whose docstring says what is done."""

from faults.catalogue import chaos, clocks, deploys, handlers, network, processes, rows, server, sqlite
from faults.fault import catalogue as catalogue

__all__ = ["catalogue", "chaos", "clocks", "deploys", "handlers", "network", "processes", "rows", "server", "sqlite"]
