"""An async handler's work that does not let itself be cancelled."""

import asyncio


async def ignore_cancellation(until, noticed):
    """Goes on until the event ``until``; sets ``noticed`` when it is to be cancelled."""
    while not until.is_set():
        try:
            await asyncio.sleep(0.05)  # a step in which it can be cancelled
        except asyncio.CancelledError:
            noticed.set()
