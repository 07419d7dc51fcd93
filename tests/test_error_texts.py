"""Errors as well-known libraries write them: each bug is one group, and no two bugs share one.

``error_texts.json`` has a bug's error type, some of its texts, and the fingerprint that it has had since version 1. A
release that changes a fingerprint splits every group there is into an old and a new one: it must change VERSION, and
say so in the changelog.
"""

import json
from pathlib import Path

import pytest

from django_jobs.fingerprint import VERSION, fingerprint, normalise

BUGS = json.loads(Path(__file__).with_name("error_texts.json").read_text(encoding="utf-8"))
SECRETIVE = ["joe@example.com", "4711", "cus_NffrFeUfNV2Hib", "api.stripe.com", "/srv/media", "10.0.0.5", "Anna"]


def test_the_corpus_is_large_enough_to_mean_something():
    assert len(BUGS) >= 60
    assert sum(len(bug["texts"]) for bug in BUGS) >= 100


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug["bug"])
def test_all_texts_of_a_bug_are_one_group_which_is_the_same_in_every_release(bug):
    found = {fingerprint("send_invoice", bug["type"], text) for text in bug["texts"]}
    assert found == {bug["fingerprint"]}, [normalise(text) for text in bug["texts"]]
    assert bug["fingerprint"].startswith(f"{VERSION}:")


def test_different_bugs_are_different_groups():
    bugs = {}
    for bug in BUGS:
        bugs.setdefault(bug["fingerprint"], []).append(bug["bug"])
    assert [names for names in bugs.values() if len(names) > 1] == []


def test_what_a_call_was_about_is_not_part_of_its_group():
    for bug in BUGS:
        for text in bug["texts"]:
            assert not [word for word in SECRETIVE if word in normalise(text)]
