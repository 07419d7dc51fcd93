"""Some at a time."""

from itertools import count

from django_jobs.chunks import chunks


def test_the_last_chunk_holds_the_rest():
    assert list(chunks(range(7), 3)) == [[0, 1, 2], [3, 4, 5], [6]]


def test_without_a_size_all_come_at_once():
    assert list(chunks(iter("abc"), None)) == [["a", "b", "c"]]


def test_nothing_makes_no_chunk():
    assert list(chunks([], 3)) == list(chunks([], None)) == []


def test_no_more_is_taken_than_a_chunk_holds():
    numbers = count()
    assert next(chunks(numbers, 3)) == [0, 1, 2]
    assert next(numbers) == 3
