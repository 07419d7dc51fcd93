"""What people read for the codes that stand in rows. A code that another build wrote may be missing here."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

STATES = {
    "scheduled": _("scheduled"),
    "pending": _("pending"),
    "processing": _("processing"),
    "failed_retrying": _("retrying"),
    "succeeded": _("succeeded"),
    "cancelled": _("cancelled"),
    "discarded": _("discarded"),
    "dead": _("dead"),
}
BULK_STATES = {
    "running": _("running"),
    "canary": _("waits for you"),
    "done": _("done"),
    "aborted": _("aborted"),
}
WORKER_STATES = {"alive": _("alive"), "stopped": _("stopped"), "lost": _("silent")}

SEVERITIES = {"warning": _("warning"), "error": _("error"), "critical": _("critical")}
CONDITIONS = {
    "overdue_success": _("no success for too long"),
    "unexpected_metrics": _("unexpected numbers"),
    "broken_schedule": _("broken schedule"),
    "new_dead_group": _("new dead group"),
    "dead_rate": _("many jobs die"),
    "lost_leases": _("lost leases"),
    "oldest_job": _("a job waits for too long"),
    "queue_trend": _("a queue grows"),
    "unserved_queue": _("nobody serves a queue"),
    "old_transaction": _("old transaction"),
    "dead_tuples": _("vacuum lags behind"),
    "missing_partition": _("missing partition"),
}
ALERT_STATES = {"open": _("open"), "acknowledged": _("acknowledged"), "resolved": _("resolved")}

SLOT_OUTCOMES = {
    "fired": _("fired"),
    "skipped_overlap": _("skipped: the last job was unfinished"),
    "run_now": _("run by hand"),
    "skipped_catch_up": _("missed"),
}
CATCH_UPS = {"latest": _("run the latest one"), "all": _("run all of them"), "skip": _("skip them")}
OVERLAPS = {"allow": _("enqueue all the same"), "skip": _("skip the slot")}

SOURCES = {"admin": _("admin"), "command": _("command"), "code": _("code"), "api": _("API")}
TARGET_KINDS = {
    "job": _("job"),
    "queue": _("queue"),
    "schedule": _("schedule"),
    "alert": _("alert"),
    "bulk_operation": _("bulk operation"),
}
ACTIONS = {
    "cancel": _("cancelled"),
    "retry": _("retried"),
    "retry_changed": _("retried with another payload"),
    "discard": _("discarded"),
    "run_now": _("ran now"),
    "change_priority": _("changed the priority"),
    "reveal_payload": _("revealed the payload"),
    "pause": _("paused"),
    "resume": _("resumed"),
    "acknowledge": _("acknowledged"),
    "resolve": _("resolved"),
    "create": _("created"),
    "change": _("changed"),
    "delete": _("deleted"),
    "bulk_retry_requested": _("asked for a bulk retry"),
    "bulk_retry_confirmed": _("confirmed a bulk retry"),
    "bulk_retry_aborted": _("aborted a bulk retry"),
    "bulk_retry": _("bulk retry done"),
    "bulk_discard_requested": _("asked for a bulk discard"),
    "bulk_discard_aborted": _("aborted a bulk discard"),
    "bulk_discard": _("bulk discard done"),
}
