"""`tsuzuki job add` at a terminal asks for what is missing; elsewhere it asks nothing."""

import pytest

from support.terminal import at_terminal
from support.workspace import Workspace
from tsuzuki.config.starter_file import starter_text
from tsuzuki.wiring.collectors import installed_collectors

STARTER = starter_text(installed_collectors().kinds)
WHEN = "only by hand) "


def test_a_person_is_asked_for_all_of_it_and_wrong_answers_again(workspace: Workspace) -> None:
    with at_terminal(["job", "add", "--type", "books"], workspace.folder) as terminal:
        terminal.answer("Job name: ", "two words")
        terminal.expect("invalid job name")
        terminal.answer("Job name: ", "hello")
        terminal.expect("a job named hello already exists")
        terminal.answer("Job name: ", "stars")
        terminal.answer("(separate several with commas): ", "")
        terminal.answer("(separate several with commas): ", "subject:astronomy, intitle:星")
        terminal.answer(WHEN + "[daily at 07:00]: ", "evry 1h")
        terminal.expect('Did you mean "every"?')
        terminal.answer(WHEN + "[daily at 07:00]: ", "")
        terminal.expect(
            "The same without questions: tsuzuki job add stars --type books"
            """ --set 'queries=["subject:astronomy", "intitle:星"]' --schedule 'daily at 07:00'\n"""
        )
        assert terminal.end() == 0
    assert workspace.file.read_text() == STARTER + (
        "\n  stars:\n    type: books\n"
        '    queries: ["subject:astronomy", "intitle:星"]\n    schedule: "daily at 07:00"\n'
    )
    assert workspace.job("stars")["sync_state"] == "applied"


def test_what_to_run_is_asked_for_too_and_only_by_hand_is_an_answer(workspace: Workspace) -> None:
    with at_terminal(["job", "add", "bot"], workspace.folder) as terminal:
        terminal.answer("one of books, codeindex, commits, feeds): ", "feeds")
        terminal.answer("https://): ", "example.org/feed")
        terminal.expect("must be an address")
        terminal.answer("https://): ", "https://example.org/feed")
        terminal.answer(WHEN + "[every 15m]: ", "none")
        assert terminal.end() == 0
    job = workspace.job("bot")
    assert (job["handler"], job["schedule_words"]) == ("feeds", "manual")
    assert job["options"]["feeds"]["bot"]["url"] == "https://example.org/feed"


def test_a_command_is_asked_for_its_time_too(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["./backup.sh --all", "daily at 02:30"])
    monkeypatch.setattr("tsuzuki.cli.job.edit.can_ask", lambda: True)
    monkeypatch.setattr("click.prompt", lambda *_words, **_options: next(answers))
    told = workspace.ok("job", "add", "backup").err
    assert """--set 'command="./backup.sh --all"' --schedule 'daily at 02:30'""" in told
    assert workspace.job("backup")["schedule_words"] == "at 02:30 every day, UTC"


def test_what_was_said_is_not_asked_for(workspace: Workspace) -> None:
    words = ["job", "add", "tree", "--type", "codeindex", "--set", "roots=[src]", "--every", "1h"]
    with at_terminal(words, workspace.folder) as terminal:
        assert terminal.end() == 0
    assert ": " not in terminal.shown.partition("Added")[0]
    assert workspace.job("tree")["options"]["roots"] == ["src"]


def test_an_optional_answer_may_be_left_out_and_a_dry_run_writes_nothing(
    workspace: Workspace,
) -> None:
    before = workspace.content()
    words = ["job", "add", "nightly", "--type", "commits", "--dry-run"]
    with at_terminal(words, workspace.folder) as terminal:
        terminal.answer("leave empty for all followed branches): ", "")
        terminal.answer(WHEN + "[every 1h]: ", "")
        assert terminal.end() == 0
    assert "projects" not in terminal.shown.partition("Dry run")[0].partition("The same")[2]
    assert workspace.content() == before


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ([], 2, "missing job name"),
        (["x"], 2, "job 'x' has nothing to run"),
        (["x", "--type", "books"], 3, "queries"),
    ],
)
def test_without_a_terminal_nothing_is_asked_and_nothing_written(
    words: list[str], code: int, told: str, workspace: Workspace
) -> None:
    before = workspace.content()
    ended = workspace.run("job", "add", *words)
    assert ended.code == code
    assert told in ended.err
    assert workspace.content() == before
