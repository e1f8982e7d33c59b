"""The output of isolated functions: everything that they write becomes the run's log, in order."""

from collections.abc import Callable

import pytest

from support.executions import eventually
from support.isolated_calls import IsolatedCall, IsolatedExecutions
from tsuzuki.engine.outcome import Failed, StopCause, Stopped, Succeeded

Write = Callable[..., None]


def test_all_that_is_written_is_in_the_log_in_order_and_with_its_level(
    write: Write, call: IsolatedCall
) -> None:
    write("""
        import logging, os, subprocess, sys, warnings
        def writes(run):
            for number in range(50):
                print("printed", number)
                os.write(1, b"by C\\n")
                run.log("logged")
                print("to stderr", file=sys.stderr)
                os.write(2, b"by C, to stderr\\n")
                logging.getLogger("orders").warning("one %s", "record")
                subprocess.run(["echo", "a program"])
                logging.info("root")
            warnings.warn("old")
            print("no newline", end="")
    """)
    outcome, run_io = call("work:writes")
    assert outcome == Succeeded()
    expected = []
    for number in range(50):
        expected += [
            ("stdout", f"printed {number}"),
            ("stdout", "by C"),
            ("log", "logged"),
            ("stderr", "to stderr"),
            ("stdout", "by C, to stderr"),
            ("log", "WARNING orders: one record"),
            ("stdout", "a program"),
            ("log", "INFO root: root"),
        ]
    assert run_io.lines[:-2] == expected
    (_, warning), last = run_io.lines[-2:]
    assert warning.startswith("WARNING py.warnings: ")
    assert last == ("stdout", "no newline")


def test_lines_that_c_code_buffers_are_in_order_and_in_their_own_run(
    write: Write, call: IsolatedCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    write("""
        import ctypes
        def writes(run):
            libc = ctypes.CDLL(None)
            libc.puts(b"by C")
            print("printed")
            libc.puts(b"by C again")
            print("printed again")
            libc.printf(b"no newline")
        def nothing(): ...
    """)
    _, run_io = call("work:writes")
    assert run_io.of("stdout") == ["by C", "printed", "by C again", "printed again", "no newline"]
    assert call("work:nothing")[1].lines == []


def test_bytes_that_are_not_utf_8_are_replaced(write: Write, call: IsolatedCall) -> None:
    write(r"""
        import os, sys
        def writes(run):
            os.write(1, b"raw \xff\n")
            sys.stdout.buffer.write(b"buffer \xff\n")
            sys.stdout.flush()
            run.log("half \udcff of a pair")
    """)
    _, run_io = call("work:writes")
    assert run_io.lines == [
        ("stdout", "raw \ufffd"),
        ("stdout", "buffer \ufffd"),
        ("log", "half \udcff of a pair"),
    ]


def test_a_long_line_comes_in_pieces_and_a_long_entry_as_a_whole(
    write: Write, call: IsolatedCall
) -> None:
    write("""
        def writes(run):
            print("p" * 100_000)
            run.log("l" * 100_000)
    """)
    _, run_io = call("work:writes")
    assert "".join(run_io.of("stdout")) == "p" * 100_000
    assert run_io.of("log") == ["l" * 100_000]


def test_threads_and_forks_do_not_mix_their_lines_up(write: Write, call: IsolatedCall) -> None:
    write("""
        import os, threading
        def writes(run):
            def many(letter):
                for _ in range(20):
                    run.log(letter * 9_000)
            threads = [threading.Thread(target=many, args=(letter,)) for letter in "abc"]
            for thread in threads: thread.start()
            pid = os.fork()
            if pid == 0:
                many("f")
                os._exit(0)
            for thread in threads: thread.join()
            os.waitpid(pid, 0)
    """)
    outcome, run_io = call("work:writes")
    assert outcome == Succeeded()
    lines = run_io.of("log")
    assert len(lines) == 80
    assert {(len(line), len(set(line))) for line in lines} == {(9_000, 1)}


def test_a_fork_that_returns_does_not_end_the_run_twice(write: Write, call: IsolatedCall) -> None:
    write("""
        import os
        def forks():
            pid = os.fork()
            if pid:
                os.waitpid(pid, 0)
            return pid != 0
    """)
    assert call("work:forks")[0] == Succeeded(result=True)


def test_progress_is_passed_on_and_a_wrong_count_is_refused(
    write: Write, call: IsolatedCall
) -> None:
    write("""
        def counts(run):
            run.progress(3, 10)
            run.progress(True)
    """)
    outcome, run_io = call("work:counts")
    assert run_io.reports == [(3, 10)]
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith("progress: ")


def test_without_space_a_function_waits_and_no_line_is_lost(
    write: Write, executions: IsolatedExecutions
) -> None:
    write("""
        def floods(run):
            for number in range(5_000):
                print("line", number, "x" * 100)
            return "written"
    """)
    run_io = executions.run_io
    run_io.is_full = True
    executions.begin("work:floods")
    eventually(lambda: run_io.refusals > 2)
    assert run_io.lines == []
    assert executions.outcomes == []
    run_io.make_space()
    assert executions.outcome() == Succeeded(result="written")
    assert len(run_io.of("stdout")) == 5_000


def test_a_program_that_does_not_want_to_wait_for_the_pipe_loses_no_line_of_the_function(
    write: Write, executions: IsolatedExecutions
) -> None:
    write("""
        import os
        def floods(run):
            os.set_blocking(1, False)
            for number in range(2_000):
                print("line", number, "x" * 100)
            return "written"
    """)
    run_io = executions.run_io
    run_io.is_full = True
    executions.begin("work:floods")
    eventually(lambda: run_io.refusals > 2)
    run_io.make_space()
    assert executions.outcome() == Succeeded(result="written")
    assert len(run_io.of("stdout")) == 2_000


def test_a_function_that_waits_for_space_can_be_stopped(
    write: Write, executions: IsolatedExecutions
) -> None:
    write("""
        def floods(run):
            while True:
                print("x" * 1000)
    """)
    executions.run_io.is_full = True
    execution = executions.begin("work:floods")
    eventually(lambda: executions.run_io.refusals > 2)
    execution.stop(StopCause.TIMEOUT)
    assert executions.outcome() == Stopped(cause=StopCause.TIMEOUT)
