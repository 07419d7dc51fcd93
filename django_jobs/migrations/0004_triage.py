import django.db.models.functions.datetime
from django.db import migrations, models

import django_jobs.ids

from ._dead_groups import COUNT_EXISTING, DROP_POSTGRESQL, DROP_SQLITE, POSTGRESQL, SQLITE
from ._operations import VendorSQL


class Migration(migrations.Migration):
    dependencies = [
        ("django_jobs", "0003_alerts"),
    ]

    operations = [
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                (
                    "id",
                    models.UUIDField(default=django_jobs.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("actor", models.CharField(max_length=200)),
                ("actor_id", models.CharField(blank=True, db_default="", max_length=200)),
                ("source", models.CharField(max_length=20)),
                ("action", models.CharField(max_length=40)),
                ("target_kind", models.CharField(max_length=20)),
                ("target_id", models.CharField(blank=True, db_default="", max_length=255)),
                ("count", models.IntegerField(db_default=1)),
                ("before", models.JSONField(blank=True, null=True)),
                ("after", models.JSONField(blank=True, null=True)),
            ],
            options={
                "verbose_name": "audit entry",
                "verbose_name_plural": "audit entries",
                "db_table": "django_jobs_audit_entry",
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="BulkOperation",
            fields=[
                (
                    "id",
                    models.UUIDField(default=django_jobs.ids.uuid7, editable=False, primary_key=True, serialize=False),
                ),
                ("kind", models.CharField(choices=[("retry", "Retry"), ("discard", "Discard")], max_length=20)),
                ("filter", models.JSONField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "Running"),
                            ("canary", "Canary"),
                            ("done", "Done"),
                            ("aborted", "Aborted"),
                        ],
                        db_default="running",
                        max_length=20,
                    ),
                ),
                ("requested_by", models.CharField(blank=True, db_default="", max_length=200)),
                ("actor_id", models.CharField(blank=True, db_default="", max_length=200)),
                ("source", models.CharField(blank=True, db_default="", max_length=20)),
                ("spread", models.DurationField(blank=True, null=True)),
                ("canary", models.IntegerField(db_default=0)),
                (
                    "canary_ids",
                    models.JSONField(blank=True, db_default=models.Value([], output_field=models.JSONField())),
                ),
                ("snapshot_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("total", models.IntegerField(blank=True, null=True)),
                ("done", models.IntegerField(db_default=0)),
                ("skipped", models.IntegerField(db_default=0)),
                ("cursor_at", models.DateTimeField(blank=True, null=True)),
                ("cursor_id", models.UUIDField(blank=True, null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("spread_from", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("error", models.TextField(blank=True, db_default="")),
            ],
            options={
                "verbose_name": "bulk operation",
                "verbose_name_plural": "bulk operations",
                "db_table": "django_jobs_bulk_operation",
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="DeadGroup",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("type", models.CharField(max_length=200)),
                ("fingerprint", models.CharField(blank=True, max_length=40)),
                ("count", models.IntegerField(db_default=0)),
                ("first_seen", models.DateTimeField()),
                ("last_seen", models.DateTimeField()),
                ("first_release", models.CharField(blank=True, db_default="", max_length=200)),
                ("error_type", models.CharField(blank=True, db_default="", max_length=200)),
                ("error_summary", models.CharField(blank=True, db_default="", max_length=200)),
            ],
            options={
                "verbose_name": "dead group",
                "db_table": "django_jobs_dead_group",
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="DeadGroupChange",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("type", models.CharField(max_length=200)),
                ("fingerprint", models.CharField(blank=True, max_length=40)),
                ("change", models.SmallIntegerField()),
                ("failed_at", models.DateTimeField()),
                ("error_type", models.CharField(blank=True, db_default="", max_length=200)),
                ("error_summary", models.CharField(blank=True, db_default="", max_length=200)),
            ],
            options={
                "db_table": "django_jobs_dead_group_change",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="DeadGroupHour",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "type", "fingerprint", "hour", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("type", models.CharField(max_length=200)),
                ("fingerprint", models.CharField(blank=True, max_length=40)),
                ("hour", models.DateTimeField()),
                ("count", models.IntegerField(db_default=0)),
            ],
            options={
                "db_table": "django_jobs_dead_group_hour",
                "default_permissions": (),
            },
        ),
        migrations.AlterModelOptions(
            name="deadjob",
            options={
                "default_permissions": ("view",),
                "permissions": (("retry_deadjob", "Can retry dead jobs"), ("discard_deadjob", "Can discard dead jobs")),
                "verbose_name": "dead job",
                "verbose_name_plural": "dead jobs",
            },
        ),
        migrations.AlterModelOptions(
            name="job",
            options={
                "default_permissions": ("view",),
                "permissions": (
                    ("cancel_job", "Can cancel jobs"),
                    ("run_job", "Can run jobs now and change their priority"),
                    ("reveal_payload", "Can see what redaction hides of payloads"),
                ),
                "verbose_name": "job",
                "verbose_name_plural": "jobs",
            },
        ),
        migrations.AlterModelOptions(
            name="jobhistory",
            options={
                "default_permissions": ("view",),
                "verbose_name": "finished job",
                "verbose_name_plural": "job history",
            },
        ),
        migrations.AlterModelOptions(
            name="queue",
            options={
                "default_permissions": ("view",),
                "permissions": (("pause_queue", "Can pause and resume queues"),),
                "verbose_name": "queue",
                "verbose_name_plural": "queues",
            },
        ),
        migrations.AlterModelOptions(
            name="worker",
            options={
                "default_permissions": ("view",),
                "verbose_name": "worker",
                "verbose_name_plural": "workers",
            },
        ),
        migrations.AddIndex(
            model_name="deadjob",
            index=models.Index(fields=["failed_at", "id"], name="django_jobs_dead_job_time"),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["target_kind", "target_id"], name="django_jobs_audit_target"),
        ),
        migrations.AddIndex(
            model_name="bulkoperation",
            index=models.Index(
                condition=models.Q(("state", "running")), fields=["created_at"], name="django_jobs_bulk_running"
            ),
        ),
        migrations.AddConstraint(
            model_name="deadgroup",
            constraint=models.UniqueConstraint(fields=("type", "fingerprint"), name="django_jobs_dead_group_key"),
        ),
        migrations.AddIndex(
            model_name="deadgrouphour",
            index=models.Index(fields=["hour"], name="django_jobs_dead_hour_time"),
        ),
        VendorSQL("postgresql", POSTGRESQL, DROP_POSTGRESQL),
        VendorSQL("sqlite", SQLITE, DROP_SQLITE),
        migrations.RunSQL([COUNT_EXISTING], migrations.RunSQL.noop),
    ]
