"""A day in the life of the jobs' tables, as a busy shop leaves them: for pictures, and for trying the admin out.

The same every time, but for the clock: everything is dated back from now.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random
from typing import Any

from django.utils import timezone

from django_jobs import pause
from django_jobs.engines.protocol import MAINTENANCE
from django_jobs.failure import Failure
from django_jobs.fingerprint import fingerprint
from django_jobs.ids import uuid7_at
from django_jobs.models import (
    Alert,
    AuditEntry,
    BulkOperation,
    DeadJob,
    Job,
    JobCount,
    JobHistory,
    Leadership,
    Schedule,
    ScheduleSlot,
    Worker,
)
from django_jobs.operations.dead_group_counts import fold_changes
from django_jobs.operations.timetable import Timetable

from .lifelike_faults import BY_NAME, FAULTS, HOSTS, KINDS, QUARTER, STORES, TRACEBACK, Fault, Kind


class Day:
    """Fills empty tables of jobs. ``run()`` writes everything. ``share``: of the usual number of dead and finished."""

    def __init__(self, seed: int = 7, share: float = 1) -> None:
        self.share = share
        self.random = Random(seed)
        self.now = timezone.now().replace(microsecond=0)

    def run(self) -> None:
        Worker.objects.bulk_create(list(self.workers()))
        Leadership.objects.update_or_create(
            name=MAINTENANCE,
            defaults={"holder": self.worker(0), "token": 1, "expires_at": self.now + timedelta(minutes=1)},
        )
        JobHistory.objects.bulk_create(list(self.finished(round(400 * self.share))))
        JobCount.objects.bulk_create(list(self.counts()))
        DeadJob.objects.bulk_create(list(self.dead()), batch_size=500)
        Job.objects.bulk_create(list(self.unfinished()))
        self.schedules()
        Alert.objects.bulk_create(list(self.alerts()))
        BulkOperation.objects.bulk_create(list(self.operations()))
        AuditEntry.objects.bulk_create(list(self.audit()))
        pause("bulk", until=self.now + timedelta(minutes=25))
        while fold_changes():
            pass

    def schedules(self) -> None:
        """As rows, so that the shop's handlers need not be there."""
        stock = {
            "type": "shop.report_all_stock",
            "payload": {},
            "timezone": "Europe/Berlin",
            "jitter": timedelta(minutes=5),
        }
        erp = Schedule(pk="ERP reconciliation", type="shop.sync_to_erp", payload={"order_id": 1}, every=QUARTER)
        morning = Schedule(
            pk="stock reports",
            cron="30 6 * * 1-5",
            expect_success_within=timedelta(days=3, hours=1),
            **stock,
        )
        evening = Schedule(pk="stock reports of the evening", cron="0 22 * * *", enabled=False, **stock)
        for schedule in (erp, morning, evening):
            schedule.next_run_at = Timetable.of(schedule).first_after(self.now)
            schedule.save(force_insert=True)
        slots = [
            self.now.replace(minute=self.now.minute // 15 * 15, second=0) - timedelta(minutes=15 * n) for n in range(12)
        ]
        ScheduleSlot.objects.bulk_create(
            ScheduleSlot(
                schedule="ERP reconciliation",
                slot=slot,
                outcome="skipped_overlap" if n == 5 else "fired",
                job_id=None if n == 5 else uuid7_at(slot),
                at=slot,
            )
            for n, slot in enumerate(slots)
        )
        Schedule.objects.filter(pk="ERP reconciliation").update(
            last_slot=slots[0], last_run_at=slots[0], last_success_at=slots[1]
        )

    def alerts(self) -> Iterator[Alert]:
        yield Alert(
            condition="new_dead_group",
            subject="shop.render_invoice",
            severity="error",
            summary="New dead group: decimal.InvalidOperation in shop.render_invoice",
            opened_at=self.now - timedelta(minutes=38),
        )
        yield Alert(
            condition="oldest_job",
            subject="bulk",
            severity="warning",
            state="acknowledged",
            acknowledged_by="ada",
            summary="The oldest job of bulk has waited for 24 minutes.",
            opened_at=self.now - timedelta(minutes=9),
            last_seen_at=self.now - timedelta(seconds=20),
        )

    def operations(self) -> Iterator[BulkOperation]:
        erp = {"type": "shop.sync_to_erp", "reason": "timeout"}
        yield BulkOperation(
            id=uuid7_at(self.now - timedelta(hours=3)),
            kind="retry",
            filter=erp,
            state="done",
            requested_by="ada",
            spread=timedelta(minutes=10),
            total=318,
            done=316,
            skipped=2,
            created_at=self.now - timedelta(hours=3),
            finished_at=self.now - timedelta(hours=2, minutes=49),
        )
        yield BulkOperation(
            id=uuid7_at(self.now - timedelta(minutes=4)),
            kind="retry",
            filter={"type": "shop.deliver_webhook", "tenant": "north-star"},
            state="canary",
            requested_by="grace",
            canary=5,
            canary_ids=[str(row) for row in JobHistory.objects.order_by("-id").values_list("job_id", flat=True)[:5]],
            total=341,
            done=5,
            created_at=self.now - timedelta(minutes=4),
        )

    def audit(self) -> Iterator[AuditEntry]:
        first, second = BulkOperation.objects.order_by("id").values_list("id", flat=True)[:2]
        alert = Alert.objects.get(condition="oldest_job").pk
        said: list[tuple[int, str, str, str, object, int, Any, Any]] = [
            (2, "grace", "bulk_retry_requested", "bulk_operation", second, 0, None, {"canary": 5}),
            (9, "ada", "acknowledge", "alert", alert, 1, {"state": "open"}, {"state": "acknowledged"}),
            (25, "ada", "pause", "queue", "bulk", 1, {"paused": False}, {"paused": True}),
            (41, "grace", "change_priority", "job", uuid7_at(self.now), 1, {"priority": 0}, {"priority": 9}),
            (71, "grace", "reveal_payload", "job", uuid7_at(self.now), 1, None, None),
            (169, "ada", "bulk_retry", "bulk_operation", first, 316, None, {"done": 316, "skipped": 2}),
            (180, "ada", "bulk_retry_requested", "bulk_operation", first, 0, None, {"spread": "0:10:00"}),
        ]
        for minutes, actor, action, kind, target, count, before, after in said:
            at = self.now - timedelta(minutes=minutes)
            yield AuditEntry(
                id=uuid7_at(at),
                at=at,
                actor=actor,
                source="admin",
                action=action,
                target_kind=kind,
                target_id=str(target),
                count=count,
                before=before,
                after=after,
            )

    def workers(self) -> Iterator[Worker]:
        for n, host in enumerate(HOSTS):
            gone = n == len(HOSTS) - 1
            yield Worker(
                id=self.worker(n),
                host=host,
                pid=11,
                queues=[{"queues": ["urgent"], "slots": 5}, {"queues": ["default", "bulk"], "slots": 10}],
                version="0.1.0",
                running=0 if gone else self.random.randrange(4, 11),
                started_at=self.now - timedelta(hours=9, minutes=7 * n),
                last_seen_at=self.now - (timedelta(minutes=12) if gone else timedelta(seconds=n * 3)),
            )

    def worker(self, n: int | None = None) -> str:
        chosen = self.random.randrange(len(HOSTS) - 1) if n is None else n
        return f"{HOSTS[chosen]}:11:{chosen}a4f"

    def finished(self, count: int) -> Iterator[JobHistory]:
        for n in range(count):
            kind = self.kind()
            at = self.now - timedelta(seconds=n * 4 + self.random.random() * 3)
            duration = self.duration(kind)
            yield JobHistory(
                id=uuid7_at(at),
                job_id=uuid7_at(at - timedelta(milliseconds=duration + 90)),
                type=kind.name,
                queue=kind.queue,
                tenant=self.store(),
                status="cancelled" if n % 57 == 5 else "discarded" if n % 83 == 9 else "succeeded",
                attempts=2 if n % 19 == 3 else 1,
                enqueued_at=at - timedelta(milliseconds=duration + 90),
                started_at=at - timedelta(milliseconds=duration),
                finished_at=at,
                duration_ms=duration,
                worker=self.worker(),
                result={"file": f"invoices/INV-{48211 - n}.pdf"} if kind.name == "shop.render_invoice" else None,
                metrics={"rows_processed": 1840 - n} if kind.name == "shop.report_stock" else None,
            )

    def counts(self) -> Iterator[JobCount]:
        for n in range(90):
            minute = (self.now - timedelta(minutes=n)).replace(second=0)
            for kind in KINDS:
                usual = kind.share * (14 + self.random.randrange(6)) // 4
                failing = kind.name == "shop.deliver_webhook" and n < 55
                for outcome, count in (("succeeded", usual), ("retrying", usual // 6 if failing else usual // 60)):
                    if count:
                        yield JobCount(
                            minute=minute,
                            process=self.worker(0),
                            queue=kind.queue,
                            type=kind.name,
                            outcome=outcome,
                            count=count,
                            total_ms=count * kind.ms,
                            histogram=[0] * 24,
                        )

    def dead(self) -> Iterator[DeadJob]:
        for fault in FAULTS:
            span, jobs = fault.since - fault.until, max(round(fault.jobs * self.share), 2)
            for n in range(jobs):
                at = self.now - fault.until - span * (n + self.random.random()) / jobs
                yield self.corpse(fault, at)

    def corpse(self, fault: Fault, at: datetime) -> DeadJob:
        kind = BY_NAME.get(fault.type, KINDS[2])
        store, number = self.store(), self.random.randrange(10_000, 99_999)
        message = fault.message.format(n=number, store=store)
        failure = Failure.of(fault.error, message)
        return DeadJob(
            id=uuid7_at(at - timedelta(hours=3)),
            queue=kind.queue,
            type=fault.type,
            payload={kind.field: number, "api_token": "s3cr3t"} if fault.reason == "timeout" else {kind.field: number},
            priority=kind.priority,
            tenant=store,
            run_at=at,
            created_at=at - timedelta(hours=3),
            attempts=fault.attempts,
            max_attempts=fault.attempts,
            last_error=message,
            errors=[
                self.error(fault, message, n, at)
                for n in (1, 2, *range(max(3, fault.attempts - 7), fault.attempts + 1))
            ],
            context={"request_id": f"req-{number:x}", "enqueued_by": "checkout"},
            failed_at=at,
            reason=fault.reason,
            error_type=fault.error,
            error_summary=failure.summary,
            fingerprint=fingerprint(fault.type, fault.error, message),
        )

    def error(self, fault: Fault, message: str, attempt: int, last: datetime) -> dict[str, Any]:
        trace = TRACEBACK.format(
            line=fault.line, function=fault.function, code=fault.code, error=fault.error, message=message
        )
        at = last - timedelta(hours=3) * (1 - 2 ** (attempt - fault.attempts))
        return {
            "at": (last if attempt == fault.attempts else at).isoformat(),
            "attempt": attempt,
            "type": fault.error,
            "message": message,
            "traceback": trace if fault.code else "",
            "worker": self.worker(),
            "duration_ms": 20_004 if fault.reason == "timeout" else self.random.randrange(80, 900),
        }

    def unfinished(self) -> Iterator[Job]:
        yield self.report()
        for n in range(18):
            yield self.job(n, status="processing", attempts=1, locked_by=self.worker(), lease_token=10**6 + n)
        for n in range(130):
            yield self.job(n, status="pending", ready_seq=n + 1)
        for n in range(40):
            yield self.job(n, status="scheduled", run_at=self.now + timedelta(minutes=3 + 29 * n))
        for n in range(24):
            yield self.retrying(n)

    def report(self) -> Job:
        """A long run that shows how far it is."""
        return self.job(
            0,
            kind=BY_NAME["shop.report_stock"],
            status="processing",
            attempts=1,
            locked_by=self.worker(1),
            lease_token=10**6 - 1,
            payload={"store": "north-star", "day": f"{self.now:%Y-%m-%d}"},
            tenant="north-star",
            progress={"fraction": 0.62, "message": "1,140 of 1,840 products"},
        )

    def retrying(self, n: int) -> Job:
        message = FAULTS[0].message.format(n=5000 + n, store=STORES[n % len(STORES)])
        return self.job(
            n,
            kind=BY_NAME["shop.deliver_webhook"],
            status="scheduled",
            run_at=self.now + timedelta(seconds=40 + 95 * n),
            attempts=2,
            max_attempts=5,
            last_error=message,
            errors=[self.error(FAULTS[0], message, attempt, self.now) for attempt in (1, 2)],
        )

    def job(self, n: int, *, kind: Kind | None = None, **values: Any) -> Job:
        kind = kind or self.kind()
        at = self.now - timedelta(seconds=2 * n + self.random.random())
        number = self.random.randrange(10_000, 99_999)
        usual: dict[str, Any] = {
            "id": uuid7_at(at),
            "queue": kind.queue,
            "type": kind.name,
            "payload": {kind.field: number},
            "priority": kind.priority,
            "tenant": self.store(),
            "run_at": at,
            "created_at": at,
            "max_attempts": 12,
            "locked_until": self.now + timedelta(seconds=50) if values.get("status") == "processing" else None,
            "context": {"request_id": f"req-{number:x}", "enqueued_by": "checkout"},
        }
        return Job(**(usual | values))

    def kind(self) -> Kind:
        return self.random.choices(KINDS, [kind.share for kind in KINDS])[0]

    def store(self) -> str:
        return self.random.choices(STORES, range(len(STORES), 0, -1))[0]

    def duration(self, kind: Kind) -> int:
        return int(kind.ms * self.random.lognormvariate(0, 0.35))
