"""The log of one run: whole within its limit; beyond it, its first and its last lines and how much is missing."""

from support.moving_clock import NOON
from tsuzuki.engine.worker.run_log import LINE_COST_MIN, TAIL_BYTES_MAX, RunLog
from tsuzuki.model.run_limits import LOG_LINE_BYTES_MAX
from tsuzuki.store.logs import LogLine

CAP = 100 * LINE_COST_MIN


def test_a_log_within_its_limit_is_whole() -> None:
    log = RunLog()
    stored = [line for number in range(100) for line in log.add(NOON, "log", str(number), cap=CAP)]
    assert len(stored) == 80
    lines = stored + log.end(NOON, cap=CAP)
    assert [line.body for line in lines] == [str(number) for number in range(100)]
    assert [line.seq for line in lines] == list(range(1, 101))


def test_of_a_longer_one_four_fifths_are_its_first_lines_and_one_its_last() -> None:
    log = RunLog()
    stored = [line for number in range(1000) for line in log.add(NOON, "log", str(number), cap=CAP)]
    assert [line.body for line in stored] == [
        *(str(number) for number in range(80)),
        f"the log reached its limit of {CAP} bytes; after this, only the last lines are "
        "stored when the run ends",
    ]
    missing, *last = log.end(NOON, cap=CAP)
    assert (missing.stream, missing.body) == ("log", "900 lines (3580 bytes) are missing here")
    assert [line.body for line in last] == [str(number) for number in range(980, 1000)]
    assert [line.seq for line in last] == list(range(83, 103))


def test_output_of_a_process_is_cut_by_lines_too_however_it_arrives() -> None:
    output = [str(number).encode() for number in range(1000)]
    whole, parts = RunLog(), RunLog()
    expected = _bodies(whole.add(NOON, "stdout", b"\n".join(output), cap=CAP))
    expected += _bodies(whole.end(NOON, cap=CAP))
    found = []
    for first in range(0, 1000, 7):
        part = b"\n".join(output[first : first + 7])
        found += _bodies(parts.add(NOON, "stdout", part, cap=CAP))
    found += _bodies(parts.end(NOON, cap=CAP))
    assert [body for body in found if "limit" not in body] == expected
    assert expected[80] == "900 lines (3580 bytes) are missing here"
    assert expected[-1] == "999"


def test_the_streams_stay_in_order_in_the_last_lines() -> None:
    log = RunLog()
    log.add(NOON, "stdout", b"\n".join([b"y"] * 1000), cap=CAP)
    log.add(NOON, "stderr", b"error: no space left", cap=CAP)
    log.add(NOON, "stdout", b"make: *** [all]", cap=CAP)
    assert [(line.stream, line.body) for line in log.end(NOON, cap=CAP)][-3:] == [
        ("stdout", "y"),
        ("stderr", "error: no space left"),
        ("stdout", "make: *** [all]"),
    ]


def test_memory_for_the_last_lines_is_bounded_however_high_the_limit_is() -> None:
    cap = TAIL_BYTES_MAX * 100
    log = RunLog()
    chunk = b"x" * 1000
    head = sum(len(log.add(NOON, "stdout", chunk, cap=cap)) for _ in range(60_000))
    assert head == (cap - TAIL_BYTES_MAX) // 1001 + 1  # and the line that says so
    assert len(log.end(NOON, cap=cap)) == TAIL_BYTES_MAX // 1001 + 1


def test_a_last_line_longer_than_its_share_is_kept() -> None:
    log = RunLog()
    log.add(NOON, "log", "x" * CAP, cap=CAP)
    log.add(NOON, "log", "y" * CAP, cap=CAP)
    missing, last = log.end(NOON, cap=CAP)
    assert missing.body == f"1 lines ({CAP + 1} bytes) are missing here"
    assert last.body == "y" * CAP


def test_a_line_that_is_too_long_becomes_several() -> None:
    log = RunLog()
    line = "é" * LOG_LINE_BYTES_MAX + "\udcff"
    stored = log.add(NOON, "log", line, cap=10 * len(line))
    bodies = _bodies(stored + log.end(NOON, cap=10 * len(line)))
    assert "".join(bodies) == "é" * LOG_LINE_BYTES_MAX + "\ufffd"
    assert [len(body.encode()) for body in bodies] == [LOG_LINE_BYTES_MAX, LOG_LINE_BYTES_MAX, 3]
    assert [line.seq for line in stored] == [1, 2, 3]


def test_a_line_longer_than_the_whole_log_takes_no_more_memory_than_the_last_lines() -> None:
    log = RunLog()
    cap = 10 * LOG_LINE_BYTES_MAX
    stored = log.add(NOON, "log", "x" * (100 * cap), cap=cap)
    kept = log.end(NOON, cap=cap)
    assert sum(len(line.body) for line in stored + kept) <= cap


def _bodies(lines: list[LogLine]) -> list[str]:
    return [line.body for line in lines]
