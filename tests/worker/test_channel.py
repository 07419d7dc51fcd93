"""Messages between processes: a side that does not read blocks the other for a while only."""

import threading

import pytest

from django_jobs.worker import channel
from django_jobs.worker.channel import Channel

LONG = "x" * 1_000_000


@pytest.fixture
def ends():
    ours, theirs = Channel.pair()
    theirs = Channel(theirs, patience=0.2)
    yield ours, theirs
    ours.close()
    theirs.close()


def test_what_is_said_arrives_in_order(ends):
    ours, theirs = ends
    assert theirs.send(a=1)
    assert theirs.send(b="two")
    assert ours.receive(1) == [{"a": 1}, {"b": "two"}]


def test_a_side_that_does_not_read_is_given_up_on_also_by_one_that_listens_meanwhile(ends):
    """A stopped supervisor must not stop the watchdog of its children, which tells it how they are."""
    ours, theirs = ends
    listener = threading.Thread(target=theirs.receive, args=(None,))
    listener.start()
    try:
        sender = threading.Thread(target=theirs.send, kwargs={"text": LONG}, daemon=True)
        sender.start()
        sender.join(10)
        assert not sender.is_alive()
    finally:
        ours.send(enough=True)
        listener.join(10)
    assert not listener.is_alive()


def test_the_end_of_the_other_side_is_the_end_of_the_channel(ends):
    ours, theirs = ends
    ours.close()
    assert theirs.receive(None) == []
    assert not theirs.open
    assert not theirs.send(a=1)


def test_a_message_is_given_five_seconds_unless_told_otherwise():
    ours, theirs = Channel.pair()
    with theirs:
        assert ours._socket.gettimeout() == channel.SEND_SECONDS == 5
    ours.close()
