import django.db.models.functions.datetime
from django.db import migrations, models

import django_jobs.ids

from ._functions import DROP_ENQUEUE, DROP_WAKE, ENQUEUE, WAKE
from ._operations import CreatePartitionedModel, VendorSQL, add_first_partitions

LEASE_TOKENS = "django_jobs_lease_token_seq"
READY_ORDER = "django_jobs_ready_seq"

# Whoever makes a row pending stamps it with its own transaction's id: FIFO up to overlapping transactions.
READY_DEFAULTS = f"""
ALTER TABLE django_jobs_job
    ALTER COLUMN ready_xid SET DEFAULT pg_current_xact_id()::text::bigint,
    ALTER COLUMN ready_seq SET DEFAULT nextval('{READY_ORDER}')
"""
PLAIN_DEFAULTS = """
ALTER TABLE django_jobs_job ALTER COLUMN ready_xid SET DEFAULT 0, ALTER COLUMN ready_seq SET DEFAULT 0
"""

# A small table that turns over completely all the time: vacuum it early and at full speed.
JOB_STORAGE = """
ALTER TABLE django_jobs_job SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_vacuum_insert_scale_factor = 0.2,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000
)
"""

SQLITE_LEASE_TOKENS = [
    f"CREATE TABLE {LEASE_TOKENS} (last_value integer NOT NULL)",
    f"INSERT INTO {LEASE_TOKENS} VALUES (0)",  # noqa: S608
]


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Effect",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "job_id", "name", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("job_id", models.UUIDField()),
                ("name", models.CharField(max_length=200)),
                ("done_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "django_jobs_effect",
            },
        ),
        migrations.CreateModel(
            name="JobCount",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "minute",
                        "process",
                        "queue",
                        "type",
                        "outcome",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("minute", models.DateTimeField()),
                ("process", models.CharField(max_length=100)),
                ("queue", models.CharField(max_length=200)),
                ("type", models.CharField(max_length=200)),
                ("outcome", models.CharField(max_length=20)),
                ("count", models.IntegerField()),
                ("total_ms", models.BigIntegerField()),
                ("histogram", models.JSONField()),
            ],
            options={
                "db_table": "django_jobs_job_count",
            },
        ),
        migrations.CreateModel(
            name="Queue",
            fields=[
                ("name", models.CharField(max_length=200, primary_key=True, serialize=False)),
                ("paused_at", models.DateTimeField(blank=True, null=True)),
                ("resume_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "verbose_name": "queue",
                "verbose_name_plural": "queues",
                "db_table": "django_jobs_queue",
            },
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                ("id", models.CharField(max_length=100, primary_key=True, serialize=False)),
                ("host", models.CharField(max_length=255)),
                ("pid", models.IntegerField()),
                ("queues", models.JSONField()),
                ("version", models.CharField(max_length=50)),
                ("running", models.IntegerField(db_default=0)),
                ("started_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("last_seen_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("stopped_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "verbose_name": "worker",
                "verbose_name_plural": "workers",
                "db_table": "django_jobs_worker",
            },
        ),
        migrations.CreateModel(
            name="DeadJob",
            fields=[
                (
                    "id",
                    models.UUIDField(default=django_jobs.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                ("queue", models.CharField(max_length=200)),
                ("type", models.CharField(max_length=200)),
                ("payload", models.JSONField()),
                ("priority", models.SmallIntegerField(db_default=0)),
                ("tenant", models.CharField(blank=True, db_default="", max_length=200)),
                ("run_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("attempts", models.SmallIntegerField(db_default=0)),
                ("max_attempts", models.SmallIntegerField()),
                ("lost_runs", models.SmallIntegerField(db_default=0)),
                ("untaken_since", models.DateTimeField(blank=True, null=True)),
                ("idempotency_key", models.CharField(blank=True, db_default="", max_length=255)),
                ("last_error", models.TextField(blank=True, db_default="")),
                (
                    "errors",
                    models.JSONField(blank=True, db_default=models.Value([], output_field=models.JSONField())),
                ),
                (
                    "context",
                    models.JSONField(blank=True, db_default=models.Value({}, output_field=models.JSONField())),
                ),
                ("progress", models.JSONField(blank=True, null=True)),
                ("failed_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "reason",
                    models.CharField(
                        choices=[
                            ("exhausted", "Exhausted"),
                            ("buried_by_handler", "Buried By Handler"),
                            ("worker_lost", "Worker Lost"),
                            ("timeout", "Timeout"),
                            ("no_handler", "No Handler"),
                            ("bad_payload", "Bad Payload"),
                            ("unrecordable", "Unrecordable"),
                        ],
                        max_length=20,
                    ),
                ),
                ("error_type", models.CharField(blank=True, db_default="", max_length=200)),
                ("error_summary", models.CharField(blank=True, db_default="", max_length=200)),
                ("fingerprint", models.CharField(blank=True, db_default="", max_length=40)),
            ],
            options={
                "verbose_name": "dead job",
                "verbose_name_plural": "dead jobs",
                "db_table": "django_jobs_dead_job",
                "indexes": [
                    models.Index(fields=["type", "fingerprint", "failed_at"], name="django_jobs_dead_job_group")
                ],
            },
        ),
        migrations.CreateModel(
            name="IdempotencyKey",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "queue", "key", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("queue", models.CharField(max_length=200)),
                ("key", models.CharField(max_length=255)),
                ("job_id", models.UUIDField()),
                ("payload_hash", models.BinaryField()),
                ("expires_at", models.DateTimeField()),
            ],
            options={
                "db_table": "django_jobs_idempotency_key",
                "indexes": [models.Index(fields=["expires_at"], name="django_jobs_idempotency_expiry")],
            },
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                (
                    "id",
                    models.UUIDField(default=django_jobs.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                ("queue", models.CharField(max_length=200)),
                ("type", models.CharField(max_length=200)),
                ("payload", models.JSONField()),
                ("priority", models.SmallIntegerField(db_default=0)),
                ("tenant", models.CharField(blank=True, db_default="", max_length=200)),
                ("run_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("attempts", models.SmallIntegerField(db_default=0)),
                ("max_attempts", models.SmallIntegerField()),
                ("lost_runs", models.SmallIntegerField(db_default=0)),
                ("untaken_since", models.DateTimeField(blank=True, null=True)),
                ("idempotency_key", models.CharField(blank=True, db_default="", max_length=255)),
                ("last_error", models.TextField(blank=True, db_default="")),
                (
                    "errors",
                    models.JSONField(blank=True, db_default=models.Value([], output_field=models.JSONField())),
                ),
                (
                    "context",
                    models.JSONField(blank=True, db_default=models.Value({}, output_field=models.JSONField())),
                ),
                ("progress", models.JSONField(blank=True, null=True)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("scheduled", "Scheduled"),
                            ("pending", "Pending"),
                            ("processing", "Processing"),
                        ],
                        db_default="pending",
                        max_length=20,
                    ),
                ),
                ("locked_until", models.DateTimeField(blank=True, null=True)),
                ("locked_by", models.CharField(blank=True, db_default="", max_length=100)),
                ("lease_token", models.BigIntegerField(blank=True, null=True)),
                ("cancel_requested_at", models.DateTimeField(blank=True, null=True)),
                ("ready_xid", models.BigIntegerField(db_default=0, editable=False)),
                ("ready_seq", models.BigIntegerField(db_default=0, editable=False)),
            ],
            options={
                "verbose_name": "job",
                "verbose_name_plural": "jobs",
                "db_table": "django_jobs_job",
                "indexes": [
                    models.Index(
                        condition=models.Q(("lost_runs", 0), ("status", "pending")),
                        fields=["queue", "-priority", "ready_xid", "ready_seq"],
                        name="django_jobs_job_claim",
                    ),
                    models.Index(
                        condition=models.Q(("lost_runs__gt", 0), ("status", "pending")),
                        fields=["queue", "-priority", "ready_xid", "ready_seq"],
                        name="django_jobs_job_suspect",
                    ),
                    models.Index(
                        condition=models.Q(("status", "scheduled")),
                        fields=["queue", "-priority", "run_at"],
                        name="django_jobs_job_due",
                    ),
                    models.Index(
                        condition=models.Q(("status", "processing")),
                        fields=["locked_until"],
                        name="django_jobs_job_lease",
                    ),
                ],
            },
        ),
        CreatePartitionedModel(
            name="JobHistory",
            fields=[
                (
                    "id",
                    models.UUIDField(default=django_jobs.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                ("job_id", models.UUIDField(editable=False)),
                ("type", models.CharField(max_length=200)),
                ("queue", models.CharField(max_length=200)),
                ("tenant", models.CharField(blank=True, db_default="", max_length=200)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("succeeded", "Succeeded"),
                            ("cancelled", "Cancelled"),
                            ("discarded", "Discarded"),
                        ],
                        max_length=20,
                    ),
                ),
                ("attempts", models.SmallIntegerField(db_default=0)),
                ("enqueued_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("duration_ms", models.IntegerField(blank=True, null=True)),
                ("worker", models.CharField(blank=True, db_default="", max_length=100)),
                ("result", models.JSONField(blank=True, null=True)),
                ("metrics", models.JSONField(blank=True, null=True)),
                (
                    "errors",
                    models.JSONField(blank=True, db_default=models.Value([], output_field=models.JSONField())),
                ),
            ],
            options={
                "verbose_name": "finished job",
                "verbose_name_plural": "job history",
                "db_table": "django_jobs_job_history",
                "indexes": [models.Index(fields=["job_id"], name="django_jobs_history_job")],
            },
        ),
        VendorSQL("postgresql", f"CREATE SEQUENCE {LEASE_TOKENS}", f"DROP SEQUENCE {LEASE_TOKENS}"),
        VendorSQL("postgresql", f"CREATE SEQUENCE {READY_ORDER} CACHE 20", f"DROP SEQUENCE {READY_ORDER}"),
        VendorSQL("postgresql", READY_DEFAULTS, PLAIN_DEFAULTS),
        VendorSQL("postgresql", ENQUEUE, DROP_ENQUEUE),
        VendorSQL("postgresql", WAKE, DROP_WAKE),
        VendorSQL("postgresql", JOB_STORAGE, migrations.RunSQL.noop),
        VendorSQL("sqlite", SQLITE_LEASE_TOKENS, f"DROP TABLE {LEASE_TOKENS}"),
        migrations.RunPython(add_first_partitions, migrations.RunPython.noop),
    ]
