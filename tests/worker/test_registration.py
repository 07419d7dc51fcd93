"""The name by which a process leases, and counts."""

import os
import socket

from django_jobs.models import JobCount
from django_jobs.worker.registration import new_worker_id


def names(monkeypatch, *, host, pid):
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: pid)
        patch.setattr(socket, "gethostname", lambda: host)
        return {new_worker_id() for _ in range(1000)}


def test_no_two_starts_have_the_same_name_not_even_as_process_1_of_equal_hosts(monkeypatch):
    found = names(monkeypatch, host="web-1", pid=1)
    assert len(found) == 1000
    assert all(name.startswith("web-1-1-") for name in found)


def test_a_long_host_name_leaves_room_for_what_makes_the_name_unique(monkeypatch):
    found = names(monkeypatch, host="h" * 253, pid=4_194_304)
    longest = max(len(f"{prefix}-{name}") for prefix in ("supervisor", "freejobs") for name in found)
    assert longest <= JobCount._meta.get_field("process").max_length
