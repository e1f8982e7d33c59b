"""A build with a language server: its symbols are stored, and whatever it does wrong is the outcome of one file."""

import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from collectors.codeindex.builds.test_builder import make_old, outcome, rows, symbols
from support.waiting import wait_until
from tsuzuki.collectors.codeindex.builds.job import BuildJob
from tsuzuki.collectors.codeindex.extract import ExtractionFailed
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE
from tsuzuki.collectors.codeindex.lsp.server_process import LspLimits
from tsuzuki.collectors.codeindex.lsp.servers import LanguageServers
from tsuzuki.collectors.codeindex.lsp.settings import ServerCommand
from tsuzuki.collectors.codeindex.parsing import parse as parse_module
from tsuzuki.collectors.codeindex.parsing.parse import ParseLimits, parse_file
from tsuzuki.collectors.codeindex.parsing.parsed_file import FileToParse, ParsedFile, VanishedFile
from tsuzuki.collectors.codeindex.service.answers import CodeAnswers
from tsuzuki.collectors.codeindex.service.builds import Builds

SERVER = Path(__file__).with_name("lsp_server.py")
HASTY = LspLimits(
    request_seconds_max=2.5,
    message_bytes_max=2**20,
    answer_bytes_max=4 * 2**20,
    restarts_max=20,
)
BuildWith = Callable[..., BuildJob]


def command(mode: str) -> tuple[str, ...]:
    return (sys.executable, "-I", str(SERVER), mode)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Three files; the one in the middle is where a server fails."""
    root = tmp_path / "shop"
    root.mkdir()
    for name in ("a", "bad", "z"):
        (root / f"{name}.py").write_text(f"import os\n\nclass {name.upper()}:\n    x = os.name\n")
    make_old(root)
    return root


@pytest.fixture
def build_with(index_folder: Path, shop: Path) -> BuildWith:
    def build_with(*words: str, limits: LspLimits | None = None) -> BuildJob:
        builds = Builds(environ={FOLDER_VARIABLE: str(index_folder)}, workers=1, lsp_limits=limits)
        started = builds.start(shop, lsp={"python": words})
        job = builds.jobs.wait(started.id, 60)
        assert job is not None
        assert job.status != "running"
        return job

    return build_with


def change(shop: Path, name: str = "bad") -> None:
    path = shop / f"{name}.py"
    path.write_text(f"# changed\n{path.read_text()}def new(): ...\n")


def test_the_symbols_are_those_of_the_server(
    build_with: BuildWith, shop: Path, index_folder: Path
) -> None:
    job = build_with(*command("good"))
    assert job.result is not None
    assert job.result.updated_files == 3
    assert {("a.py", "A", 3), ("a.py", "served", 3)} <= symbols(index_folder, shop)
    found = rows(
        index_folder, shop, "SELECT kind, container, signature FROM symbols WHERE name = 'served'"
    )
    assert ("field", "A", "class A") in found
    assert rows(index_folder, shop, "SELECT DISTINCT extractor FROM files") == [
        (f"lsp: {shlex.join(command('good'))}",)
    ]
    (uses,) = rows(index_folder, shop, "SELECT sum(uses) FROM mentions")
    assert uses == (3,)


@pytest.mark.parametrize("mode", ["flat", "asks", "talks"])
def test_every_way_to_answer_is_understood(
    build_with: BuildWith, shop: Path, index_folder: Path, mode: str
) -> None:
    (shop / "bad.py").write_text("# 😀é\n" * 40_000 + "def late(): ...\n")
    assert build_with(*command(mode)).result is not None
    assert ("bad.py", "late", 40_001) in symbols(index_folder, shop)
    assert outcome(index_folder, shop, "bad.py") == ("indexed", None)


FAULTS = {
    "dies": "exited with code 7: out of memory",
    "hangs": "did not answer textDocument/documentSymbol within 2.5 seconds",
    "trickles": "did not answer textDocument/documentSymbol within 2.5 seconds",
    "garbage": "no message header: 'Segmentation fault",
    "no-json": "invalid JSON in a message",
    "huge": "a message of 99999999999 bytes",
    "floods": "bytes before one answer",
    "refuses": "it broke (-32603)",
    "null": "the parser finds 2 definitions",
    "text": "returned str instead of a list",
    "far": "line 901 of a file with 5 lines",
    "outside": "line 901 of a file with 5 lines",
    "nameless": "returned a symbol without name and kind",
    "deep": "more than 100 levels deep",
}


def test_what_a_server_does_wrong_is_the_outcome_of_one_file(
    build_with: BuildWith, shop: Path, index_folder: Path
) -> None:
    """A build without a server first: its symbols are the old ones of the files that fail."""
    for mode in FAULTS:
        (shop / f"bad-{mode}.py").write_text("class Old:\n    def method(self): ...\n")
    build_with()
    for mode in FAULTS:
        (shop / f"bad-{mode}.py").write_text("\n\nclass New:\n    def method(self): ...\n")
    for before in ("ha", "tr"):  # so that "hangs" and "trickles" are not the first after a start
        (shop / f"bad-{before}.py").write_text("def fine(): ...\n")
    job = build_with(*command("by-name"), limits=HASTY)
    assert job.result is not None
    assert (job.progress.processed, job.progress.total) == (len(FAULTS) + 5, len(FAULTS) + 5)
    now = symbols(index_folder, shop)
    for mode, reason in FAULTS.items():
        found, error = outcome(index_folder, shop, f"bad-{mode}.py")
        assert found == "failed", mode
        assert reason in str(error)
        assert str(error).startswith(f"language server {sys.executable}: ")
        assert (f"bad-{mode}.py", "Old", 1) in now, mode
    assert {("a.py", "served", 3), ("bad.py", "served", 3), ("z.py", "served", 3)} <= now
    assert ("a.py", "A", 3) in now
    assert job.result.updated_files == 5


def test_a_file_that_failed_is_tried_again_by_the_next_build(
    build_with: BuildWith, shop: Path, index_folder: Path
) -> None:
    build_with(*command("dies"))
    assert outcome(index_folder, shop, "bad.py")[0] == "failed"
    again = build_with(*command("dies"))
    assert again.result is not None
    assert again.result.updated_files == 0
    assert outcome(index_folder, shop, "bad.py")[0] == "failed"
    healed = build_with(*command("good"))
    assert healed.result is not None
    assert outcome(index_folder, shop, "bad.py") == ("indexed", None)


def test_what_the_parser_failed_on_is_no_question_and_not_tried_again(
    build_with: BuildWith, shop: Path, index_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(language: str, source: bytes, *, seconds_max: float) -> None:
        raise ExtractionFailed("too slow", "not parsed in time")

    with monkeypatch.context() as patched:
        patched.setattr(parse_module, "extract", fail)
        build_with(*command("good"))
    assert outcome(index_folder, shop, "a.py") == ("failed", "not parsed in time")
    again = build_with(*command("good"))
    assert again.result is not None
    assert again.result.updated_files == 0


def test_the_reason_stays_when_an_answer_parses_the_file(
    build_with: BuildWith, shop: Path, index_folder: Path
) -> None:
    build_with(*command("dies"))
    answers = CodeAnswers(shop, cwd=shop, folder=index_folder)
    found = answers.outline("bad.py").value
    assert [entry.symbol.name for entry in found] == ["BAD", "x"]
    assert outcome(index_folder, shop, "bad.py")[0] == "failed"


def test_a_server_that_always_dies_is_given_up_and_the_build_completes(
    build_with: BuildWith, shop: Path, index_folder: Path
) -> None:
    for number in range(6):
        (shop / f"more{number}.py").write_text("def more(): ...\n")
    job = build_with(*command("always-dies"))
    assert job.status == "completed"
    errors = rows(index_folder, shop, "SELECT error FROM files WHERE outcome = 'failed'")
    assert len(errors) == 9
    given_up = [error for (error,) in errors if "skipped after 4 failed starts" in str(error)]
    assert len(given_up) == 5
    assert all("exited with code 3" in error for error in given_up)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("no-such-server",), "program no-such-server not found on the PATH"),
        (("./server",), "program ./server not found; give its full path"),
        (
            (sys.executable, "-c", "raise SystemExit('no licence')"),
            "exited with code 1: no licence",
        ),
        (command("cannot"), "does not support textDocument/documentSymbol"),
    ],
)
def test_a_server_that_cannot_be_started_fails_the_build(
    build_with: BuildWith, shop: Path, index_folder: Path, words: tuple[str, ...], reason: str
) -> None:
    build_with()
    before = symbols(index_folder, shop)
    job = build_with(*words)
    assert job.status == "failed"
    assert "cannot start the language server for python" in str(job.error)
    assert reason in str(job.error)
    assert symbols(index_folder, shop) == before


def test_another_command_or_none_extracts_again(
    build_with: BuildWith, shop: Path, index_folder: Path
) -> None:
    for words, updated in (
        (command("good"), 3),
        (command("good"), 0),
        ((), 3),
        ((), 0),
    ):
        job = build_with(*words)
        assert job.result is not None
        assert job.result.updated_files == updated
    assert ("a.py", "served", 3) not in symbols(index_folder, shop)


def test_a_file_that_is_not_text_is_no_question_and_not_read_again(
    build_with: BuildWith, shop: Path
) -> None:
    (shop / "data.py").write_bytes(b"\0\1")
    make_old(shop)
    build_with(*command("good"))
    job = build_with(*command("good"))
    assert job.result is not None
    assert job.result.updated_files == 0


@pytest.mark.parametrize("mode", ["child", "stays"])
def test_nothing_is_left_behind(build_with: BuildWith, shop: Path, mode: str) -> None:
    build_with(*command(mode), limits=LspLimits(end_seconds_max=0.3))
    # What is killed is not our child, and leaves the table of processes a moment later.
    wait_until(lambda: not processes_in(shop), "every process of the server has ended")


def test_a_cancelled_build_ends_its_server(index_folder: Path, shop: Path) -> None:
    builds = Builds(environ={FOLDER_VARIABLE: str(index_folder)}, workers=1)
    started = builds.start(shop, lsp={"python": command("hangs")})
    until(lambda: processes_in(shop) != [])
    builds.jobs.cancel(started.id)
    job = builds.jobs.wait(started.id, 60)
    assert job is not None
    assert job.error == "cancelled"
    assert processes_in(shop) == []


def test_a_killed_build_leaves_no_server(index_folder: Path, shop: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from tsuzuki.collectors.codeindex.service.builds import Builds;"
        " b = Builds(); s = b.start(Path(sys.argv[1]), lsp={'python': tuple(sys.argv[2:])}); b.jobs.wait(s.id, 60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(shop), *command("asks")[:-1], "trickles"],
        env={**os.environ, FOLDER_VARIABLE: str(index_folder)},
    )
    try:
        until(lambda: processes_in(shop) != [])
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    until(lambda: processes_in(shop) == [])


def processes_in(folder: Path) -> list[int]:
    """The processes that have this current folder, as servers of the tree have."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cwd").readlink() == folder:
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def until(is_so: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(1200):
        if is_so():
            return
        pause.wait(0.05)
    raise AssertionError("it did not come to be")


def test_a_file_that_was_written_since_it_was_parsed_is_parsed_again(shop: Path) -> None:
    limits = ParseLimits()
    parsed = parse_file(str(shop), FileToParse(path="a.py"), limits)
    gone = parse_file(str(shop), FileToParse(path="z.py"), limits)
    (shop / "a.py").write_text("\n\n\nclass Later: ...\n")
    (shop / "z.py").unlink()
    server = ServerCommand(language="python", words=command("good"))
    with LanguageServers(
        shop, {"python": server}, parse_limits=limits, limits=LspLimits()
    ) as servers:
        found = servers.with_symbols(parsed)
        assert isinstance(servers.with_symbols(gone), VanishedFile)
    assert isinstance(found, ParsedFile)
    assert [(row[0], row[3]) for row in found.symbols] == [("Later", 4), ("served", 4)]
    assert found.size == (shop / "a.py").stat().st_size
