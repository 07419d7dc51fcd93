"""Signals, for receivers in your project."""

from __future__ import annotations

from django.dispatch import Signal

jobs_enqueued = Signal()
"""Sent once for each call that wrote jobs, after their transaction has committed.

``sender``: the JobType (``handle.job_type``). ``queue``: str. ``jobs``: list of EnqueuedJob, without duplicates. A
receiver that raises is logged and stops nobody. Not sent inside a TestCase, nor in a transaction that Django does not
manage, since nobody hears of the commit there.
"""
