"""Every failure has one exit code and one way to be told."""

import json
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import click
import pytest

import tsuzuki
from tsuzuki.cli import run_cli
from tsuzuki.cli.commands import Command
from tsuzuki.cli.errors import (
    EXIT_CODE_MEANINGS,
    EXIT_CODES,
    EXIT_READER_GONE,
    ExitWith,
    exit_code_of,
)
from tsuzuki.model.errors import (
    ConfigurationError,
    Conflict,
    Fenced,
    FilePlace,
    FileUnusable,
    Interrupted,
    NotFound,
    NotPermitted,
    ScheduleError,
    SchemaMismatch,
    ServiceUnreachable,
    TsuzukiError,
    Unreachable,
    UsageError,
    WaitTimedOut,
)
from tsuzuki.outward.errors import SourceRefused
from tsuzuki.outward.smtp import MailRefused

Fail = Callable[..., int]


@pytest.fixture
def fail() -> Fail:
    """Run a command that raises what is given, and answer with the exit code."""

    def run(failure: BaseException, *words: str, **environ: str) -> int:
        def raise_it() -> None:
            raise failure

        return run_cli(words, root=Command("fail", callback=raise_it), environ=environ)

    return run


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (TsuzukiError("x"), 1),
        (UsageError("x"), 2),
        (click.UsageError("x"), 2),
        (click.FileError("x"), 2),
        (ConfigurationError("x"), 3),
        (ScheduleError("x"), 3),
        (NotFound("x"), 4),
        (Unreachable("x"), 5),
        (SchemaMismatch("x"), 5),
        (ServiceUnreachable("x"), 8),
        (SourceRefused("x"), 8),
        (MailRefused("x"), 8),
        (FileUnusable("x"), 74),
        (Conflict("x"), 6),
        (Fenced("x"), 6),
        (NotPermitted("x"), 7),
        (WaitTimedOut("x"), 124),
        (Interrupted("x"), 130),
        (KeyboardInterrupt(), 130),
        (click.Abort(), 130),
        (ValueError("x"), 70),
        (BrokenPipeError("a socket, not our output"), 70),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_each_failure_has_its_exit_code_and_prints_no_data(
    failure: BaseException, code: int, fail: Fail, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fail(failure) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("error[")
    assert "Traceback" not in told.err


def every_error_class(parent: type[TsuzukiError] = TsuzukiError) -> Iterator[type[TsuzukiError]]:
    for kind in parent.__subclasses__():
        if kind.__module__.startswith("tsuzuki."):
            yield kind
            yield from every_error_class(kind)


def test_every_error_class_of_the_product_has_a_documented_exit_code() -> None:
    for module in walk_packages(tsuzuki.__path__, "tsuzuki."):
        if ".versions." not in module.name and not module.name.endswith("__main__"):
            import_module(module.name)
    found = list(every_error_class())
    assert len(found) > 20
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "running.md").read_text("utf-8")
    for kind in found:
        code = exit_code_of(kind.__new__(kind))
        assert EXIT_CODE_MEANINGS[code]
        assert f"| {code} |" in guide


def test_each_exit_code_has_one_meaning() -> None:
    assert len({*EXIT_CODE_MEANINGS.values()}) == len(EXIT_CODE_MEANINGS)


def test_only_the_store_says_that_the_database_is_unreachable() -> None:
    """A service or a file has a class of its own, and so an exit code of its own."""
    source = Path(tsuzuki.__path__[0])
    users = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if re.search(r"(?<![\w`])Unreachable\(\s", path.read_text("utf-8"))
    }
    assert {user for user in users if not user.startswith("store/")} == {"services/maintenance.py"}


def test_every_direct_child_of_the_root_error_is_in_the_map() -> None:
    ours = {
        kind for kind in TsuzukiError.__subclasses__() if kind.__module__.startswith("tsuzuki.")
    }
    assert ours <= set(EXIT_CODES)


def test_a_command_ends_with_a_code_of_its_own_in_silence(
    fail: Fail, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fail(ExitWith(1)) == 1
    assert capsys.readouterr() == ("", "")


def test_an_error_says_what_where_and_what_next(
    fail: Fail, capsys: pytest.CaptureFixture[str]
) -> None:
    place = FilePlace(file="tsuzuki.yaml", line=12, column=10, text="\tcron: 0 9 * * MOX\n")
    fail(ScheduleError("no such weekday 'MOX'", place=place, hint="did you mean 'MON'?"))
    assert capsys.readouterr().err.splitlines() == [
        "error[schedule]: no such weekday 'MOX'",
        "  --> tsuzuki.yaml:12:10",
        "    12 |     cron: 0 9 * * MOX",
        "       |             ^",
        "  hint: did you mean 'MON'?",
    ]


def test_the_caret_stands_under_the_column_after_wide_characters(
    fail: Fail, capsys: pytest.CaptureFixture[str]
) -> None:
    place = FilePlace(file="a.yaml", line=1, column=5, text="名前: 夜")
    fail(ConfigurationError("bad", place=place))
    _, _, line, caret = capsys.readouterr().err.splitlines()
    assert line == "     1 | 名前: 夜"
    assert caret == "       |       ^"


@pytest.mark.parametrize(
    ("place", "lines"),
    [
        (FilePlace(file="a.yaml"), ["  --> a.yaml"]),
        (FilePlace(file="a.yaml", line=3), ["  --> a.yaml:3"]),
        (FilePlace(file="a.yaml", line=3, text="x: 1"), ["  --> a.yaml:3", "     3 | x: 1"]),
    ],
)
def test_as_much_of_the_place_is_shown_as_is_known(
    place: FilePlace, lines: list[str], fail: Fail, capsys: pytest.CaptureFixture[str]
) -> None:
    fail(ConfigurationError("bad", place=place))
    assert capsys.readouterr().err.splitlines()[1:] == lines


class Several(ConfigurationError):
    """An error that gathers others, as a reader of a whole file raises it."""

    def __init__(self, *problems: TsuzukiError) -> None:
        super().__init__(f"{len(problems)} problems")
        self.problems = problems


def test_each_gathered_problem_is_told(fail: Fail, capsys: pytest.CaptureFixture[str]) -> None:
    several = Several(ScheduleError("one", hint="do this"), ConfigurationError("two"))
    assert fail(several) == 3
    assert capsys.readouterr().err.splitlines() == [
        "error[configuration]: 2 problems",
        "error[schedule]: one",
        "  hint: do this",
        "error[configuration]: two",
    ]
    assert fail(several, "-o", "json") == 3
    told = json.loads(capsys.readouterr().err)["error"]
    assert [problem["code"] for problem in told["problems"]] == ["schedule", "configuration"]


@pytest.mark.parametrize("output", ["json", "jsonl"])
def test_a_caller_who_reads_json_gets_one_object_on_one_line_of_stderr(
    output: str, fail: Fail, capsys: pytest.CaptureFixture[str]
) -> None:
    place = FilePlace(file="a.yaml", line=3, column=1, text="x")
    fail(NotFound("no job 'a'", hint="see 'job ls'", place=place), "--output", output)
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert json.loads(told.err) == {
        "error": {
            "code": "not_found",
            "message": "no job 'a'",
            "hint": "see 'job ls'",
            "file": "a.yaml",
            "line": 3,
            "column": 1,
        }
    }


def test_a_wrong_command_line_is_a_json_error_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["--bogus", "-o", "json"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert json.loads(told.err)["error"]["code"] == "usage"


def test_quiet_does_not_silence_errors(fail: Fail, capsys: pytest.CaptureFixture[str]) -> None:
    fail(NotFound("no such job"), "--quiet")
    assert "no such job" in capsys.readouterr().err


def test_a_hostile_message_is_harmless_and_cannot_forge_an_error(
    fail: Fail, capsys: pytest.CaptureFixture[str]
) -> None:
    fail(NotFound("no job '\x1b[2Jx\nerror[ok]: all is well'"))
    told = capsys.readouterr().err
    assert "\x1b" not in told
    assert "\n  error[ok]" in told


def test_a_bug_says_that_it_is_one_without_a_traceback(
    fail: Fail, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fail(ValueError("seven")) == 70
    told = capsys.readouterr().err
    assert told.startswith("error[bug]: bug in Tsuzuki: ValueError: seven\n  hint:")
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("words", "environ"), [(["--verbose"], {}), ([], {"TSUZUKI_TRACEBACK": "1"})]
)
def test_a_bug_shows_its_traceback_when_asked(
    words: list[str],
    environ: dict[str, str],
    fail: Fail,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert fail(ValueError("at sqlite://me:hunter2@host/x"), *words, **environ) == 70
    told = capsys.readouterr().err
    assert "Traceback (most recent call last)" in told
    assert "hunter2" not in told
    assert fail(ValueError("x"), *words, "-o", "json", **environ) == 70
    assert "Traceback" in json.loads(capsys.readouterr().err)["error"]["traceback"]


def test_verbose_shows_no_traceback_for_an_error_we_know(
    fail: Fail, capsys: pytest.CaptureFixture[str]
) -> None:
    fail(NotFound("x"), "--verbose")
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("output", ["table", "json"])
def test_no_part_of_an_error_shows_a_password(
    output: str, fail: Fail, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "postgresql://tsuzuki:hunter2@db/jobs"
    place = FilePlace(file="a.yaml", line=1, column=20, text=f"database_url: {url}")
    fail(Unreachable(f"{url} refused", hint=f"try psql {url}", place=place), "-o", output)
    told = capsys.readouterr().err
    assert "hunter2" not in told
    assert "postgresql://tsuzuki:***@db/jobs" in told
    assert "^" not in told


def test_every_exit_code_is_documented_in_the_guide_and_in_the_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    codes = {0, *EXIT_CODES.values(), EXIT_READER_GONE}
    assert set(EXIT_CODE_MEANINGS) == codes
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "running.md").read_text("utf-8")
    section = guide.partition("## Exit codes\n")[2].partition("\n## ")[0]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)] == [
        *EXIT_CODE_MEANINGS
    ]
    assert run_cli(["--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert all(f"{code} {meaning}" in told for code, meaning in EXIT_CODE_MEANINGS.items())


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("run", "ls", "--limt", "3"), "--limit"),
        (("run", "ls", "--statee", "FAILED"), "--state"),
        (("run", "ls", "--outptu", "json"), "--output"),
        (("run", "ls", "--state", "FALED"), "failed"),
        (("run", "ls", "--output", "jsn"), "json"),
        (("rnu", "ls"), "run"),
        (("run", "sohw", "1"), "show"),
    ],
)
def test_a_misspelt_word_of_the_command_line_is_answered_with_a_guess(
    words: tuple[str, ...], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(words, environ={}) == 2
    assert f'Did you mean "{meant}"?' in capsys.readouterr().err


def test_an_option_that_resembles_none_is_answered_with_the_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_cli(["job", "ls", "--limt", "3"], environ={}) == 2
    assert "See: tsuzuki job ls --help" in capsys.readouterr().err


def test_a_very_long_line_is_cut_in_the_middle(
    fail: Fail, capsys: pytest.CaptureFixture[str]
) -> None:
    fail(UsageError(f"start {'x' * 100_000} end", hint="y" * 100_000))
    told = capsys.readouterr().err
    assert all(len(line) < 700 for line in told.splitlines())
    assert "error[usage]: start xxx" in told
    assert "characters …" in told
    assert " end\n" in told


def test_a_machine_is_told_a_long_message_whole(
    fail: Fail, capsys: pytest.CaptureFixture[str]
) -> None:
    fail(UsageError("x" * 100_000), "-o", "json")
    assert "x" * 100_000 in capsys.readouterr().err


def test_of_a_very_long_line_of_a_file_the_part_at_the_column_is_shown(
    fail: Fail, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"{'a' * 5_000}HERE{'b' * 5_000}"
    fail(ConfigurationError("bad", place=FilePlace(file="a.yaml", line=1, column=5_001, text=text)))
    _, _, line, caret = capsys.readouterr().err.splitlines()
    assert len(line) < 200
    assert line[caret.index("^") :].startswith("HERE")
