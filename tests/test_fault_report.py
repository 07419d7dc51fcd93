"""What the fault kit says about what it found."""

from collections import Counter

from faults.report import Result, exit_code, line, page
from faults.verdict import Verdict

VERDICT = Verdict(
    acknowledged=1200,
    succeeded=1190,
    dead=10,
    runs=1234,
    failed_runs=20,
    lost_runs=14,
    two_at_once=Counter({"SIGSTOP": 2}),
)
HELD = Result(
    name="freezing",
    what="Stops processes.",
    vendor="postgresql",
    seed=7,
    seconds=61.4,
    lease=5.0,
    rounds=3,
    verdict=VERDICT,
    recoveries=[1.0, 2.0, 9.0],
)
BROKEN = Result(name="burning", what="Burns.", vendor="sqlite", seed=8, verdict=VERDICT, troubles=["Lost:\nall of it."])
CRASHED = Result(name="flooding", what="Floods.", vendor="sqlite", seed=9, troubles=["Traceback"])
SKIPPED = Result(name="quaking", what="Quakes.", vendor="sqlite", seed=7, skipped="there is no ground")


def test_the_page_tells_what_held_what_failed_and_what_was_skipped_for_which_reason():
    lines = page([HELD, BROKEN, CRASHED, SKIPPED], "2 cores", "python -m faults --seed=7").splitlines()
    assert "1 faults held, 2 failed, 1 were skipped. 2 cores." in lines
    assert "Again: `python -m faults --seed=7`" in lines
    assert (
        "| freezing (postgresql) | 3 | 1,200 | 1,190 succeeded, 10 dead | 1,234 | 14 | 2 (SIGSTOP) "
        "| p50 2.0, max 9.0 | 5 | 61 | held |"
    ) in lines
    assert any(text.startswith("| burning (sqlite) |") and text.endswith("| - | 0 | 0 | FAILED |") for text in lines)
    failed = lines.index("## FAILED: burning (sqlite), seed 8")
    assert lines[failed + 2 : failed + 4] == ["    Lost:", "    all of it."]
    assert "## FAILED: flooding (sqlite), seed 9" in lines
    assert "- skipped: quaking (sqlite), because there is no ground" in lines
    assert [text for text in lines if text.startswith("- **")] == [
        "- **freezing**: Stops processes.",
        "- **burning**: Burns.",
        "- **flooding**: Floods.",
        "- **quaking**: Quakes.",
    ]


def test_a_line_tells_the_verdict_and_its_figures_or_why_there_is_none():
    lines = [" ".join(line(result).split()) for result in (HELD, SKIPPED, CRASHED)]
    figures = "61.4 s, 3 rounds, 1200 jobs, 1234 runs, 14 lost, two at once: 2 (SIGSTOP), recovery p50 2.0, max 9.0"
    assert lines == [f"freezing held {figures}", "quaking skipped there is no ground", "flooding FAILED"]


def test_the_exit_code_is_one_if_a_promise_was_broken():
    assert exit_code([HELD, SKIPPED]) == 0
    assert exit_code([BROKEN, HELD]) == 1
    assert exit_code([CRASHED]) == 1
