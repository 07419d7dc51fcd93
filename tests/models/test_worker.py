"""What is read of the workers' rows, which another build may have written."""

import pytest

from django_jobs.models.worker import queues_in


def test_the_queues_of_all_groups_are_served():
    groups = [{"queues": ["urgent"], "slots": 5}, {"queues": ["default", "bulk"], "slots": 10}]
    assert queues_in(groups) == {"urgent", "default", "bulk"}


@pytest.mark.parametrize("queues", [[], {}, None, 7, [3], [{"slots": 1}], [{"queues": None}], [{"queues": "default"}]])
def test_whatever_another_build_wrote_about_its_queues_serves_nothing(queues):
    assert queues_in(queues) == set()
