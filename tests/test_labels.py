"""Every code that this build writes into a row has words."""

import pytest

from django_jobs import labels
from django_jobs.conf import CONDITIONS
from django_jobs.models import AlertState, BulkState, CatchUp, FinalStatus, JobStatus, Overlap, Severity, SlotOutcome


@pytest.mark.parametrize(
    ("table", "codes"),
    [
        (labels.STATES, {*JobStatus.values, *FinalStatus.values, "failed_retrying", "dead"}),
        (labels.BULK_STATES, BulkState.values),
        (labels.SEVERITIES, Severity.values),
        (labels.CONDITIONS, CONDITIONS),
        (labels.ALERT_STATES, AlertState.values),
        (labels.SLOT_OUTCOMES, SlotOutcome.values),
        (labels.CATCH_UPS, CatchUp.values),
        (labels.OVERLAPS, Overlap.values),
    ],
)
def test_a_table_has_exactly_the_codes_there_are(table, codes):
    assert set(table) == set(codes)
