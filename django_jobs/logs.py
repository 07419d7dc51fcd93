"""Logging that cannot end the worker: a filter, handler or formatter that raises costs its line and nothing else."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any


class SafeLogger(logging.LoggerAdapter[logging.Logger]):
    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        try:
            super().log(level, msg, *args, stacklevel=2, **kwargs)
        except Exception:  # noqa: BLE001
            with suppress(Exception):
                traceback.print_exc(file=sys.stderr)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        return msg, kwargs


def get_logger(name: str) -> SafeLogger:
    return SafeLogger(logging.getLogger(name), {})
