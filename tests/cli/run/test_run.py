"""`tsuzuki run`, `run-due`, `event`, `worker` and `leader`, typed as a person would."""

import json
from datetime import datetime, timedelta

import pytest

from support.databases import opened
from support.factories import WORKER, add_worker, take_lead
from support.workspace import Workspace
from tsuzuki.model.states import Reason
from tsuzuki.store.runs import moves


def add(workspace: Workspace, name: str, *argv: str, options: tuple[str, ...] = ()) -> None:
    workspace.ok("job", "add", name, *options, "--", *argv)


def run_of(workspace: Workspace, name: str, *words: str) -> int:
    return int(workspace.data("job", "run", name, *words)["run_id"])


def test_a_run_that_was_asked_for_waits_and_says_why(workspace: Workspace) -> None:
    run_id = run_of(workspace, "hello")
    explained = workspace.data("run", "explain", str(run_id))
    assert [ground["cause"] for ground in explained["reasons"]] == ["no_leader", "no_worker"]
    assert "tsuzuki up" in explained["reasons"][0]["hint"]
    shown = workspace.ok("run", "explain", str(run_id))
    assert "No leader" in shown.out


def test_run_due_does_what_is_due_and_ends(workspace: Workspace) -> None:
    add(workspace, "greet", "echo", "hello from Tsuzuki")
    workspace.ok("job", "disable", "hello")
    run_id = run_of(workspace, "greet")
    due = workspace.data("run-due", "--dry-run")
    assert [row["what"] for row in due] == [f"run {run_id} is waiting"]
    ended = workspace.ok("run-due", "--output", "json", "--quiet")
    assert ended.data == [{"state": "SUCCEEDED", "runs": 1}]
    assert workspace.ok("run", "logs", str(run_id)).out == "hello from Tsuzuki\n"
    assert workspace.data("run-due", "--dry-run") == []


def test_a_failed_run_is_the_exit_code_of_run_due(workspace: Workspace) -> None:
    add(workspace, "bad", "sh", "-c", "echo said >&2; exit 3")
    run_id = run_of(workspace, "bad")
    assert workspace.run("run-due", "--quiet").code == 1
    view = workspace.data("run", "show", str(run_id))
    assert (view["state"], view["reason"], view["error"]) == (
        "FAILED",
        "handler_failed",
        "exit code 3: said",
    )
    assert [move["to_state"] for move in view["history"]] == ["ASSIGNED", "RUNNING", "FAILED"]
    assert workspace.run("run", "watch", str(run_id)).code == 1
    logs = workspace.run("run", "logs", str(run_id), "--follow")
    assert (logs.code, logs.out, logs.err) == (1, "", "said\n")


def test_a_run_is_retried_once_and_the_second_time_is_a_conflict(workspace: Workspace) -> None:
    add(workspace, "bad", "false")
    run_id = run_of(workspace, "bad")
    workspace.run("run-due", "--quiet")
    again = workspace.data("run", "retry", str(run_id))
    assert again == {"run_id": again["run_id"], "retry_of": run_id}
    refused = workspace.run("run", "retry", str(run_id), "--output", "json")
    assert refused.code == 6
    assert str(again["run_id"]) in refused.error["message"]


def test_a_waiting_run_can_be_canceled_once(workspace: Workspace) -> None:
    run_id = str(run_of(workspace, "hello"))
    workspace.ok("run", "cancel", run_id)
    assert workspace.data("run", "show", run_id)["state"] == "CANCELED"
    assert workspace.run("run", "cancel", run_id).code == 6
    actions = [e["action"] for e in workspace.data("audit", "ls", "--type", "run")]
    assert actions == ["run.cancel", "run.start"]


def test_each_of_several_runs_is_canceled_though_one_has_ended(workspace: Workspace) -> None:
    ended, waiting = (str(run_of(workspace, "hello")) for _ in range(2))
    workspace.ok("run", "cancel", ended)
    told = workspace.run("run", "cancel", ended, "999", waiting)
    assert told.code == 4
    assert f"run {ended} has already ended" in told.err
    assert f"Run {waiting} of hello is CANCELED" in told.err
    assert workspace.data("run", "show", waiting)["state"] == "CANCELED"


def test_a_word_in_place_of_a_run_is_told_in_plain_words(workspace: Workspace) -> None:
    for command in ("show", "cancel"):
        told = workspace.run("run", command, "hello")
        assert told.code == 2
        assert "'hello' is not a run number\n  hint: See: tsuzuki run ls" in told.err


def test_arguments_reach_the_command_as_json(workspace: Workspace) -> None:
    add(workspace, "tell", "sh", "-c", 'echo "$TSUZUKI_ARGUMENTS"')
    run_id = run_of(workspace, "tell", "--args", '{"a": 1}', "--arg", "b=two", "--arg", "c=[3]")
    workspace.ok("run-due", "--quiet")
    told = json.loads(workspace.ok("run", "logs", str(run_id)).out)
    assert told == {"a": 1, "b": "two", "c": [3]}


def test_asking_twice_with_one_key_gives_one_run(workspace: Workspace) -> None:
    first = workspace.data("job", "run", "hello", "--key", "once")
    second = workspace.data("job", "run", "hello", "--key", "once")
    assert first == {"run_id": first["run_id"], "is_new": True}
    assert second == {"run_id": first["run_id"], "is_new": False}


@pytest.mark.parametrize("command", ["job run hello", "event emit order"])
@pytest.mark.parametrize("key", ["", "k" * 6000])
def test_a_key_that_cannot_be_one_is_refused(workspace: Workspace, command: str, key: str) -> None:
    told = workspace.run(*command.split(), "--key", key, "--output", "json")
    assert (told.code, told.error["code"]) == (2, "key_length")


def test_an_event_starts_the_jobs_that_wait_for_it_once(workspace: Workspace) -> None:
    add(workspace, "on-order", "sh", "-c", 'echo "$TSUZUKI_EVENT"', options=("--on-event", "order"))
    emit = ("event", "emit", "order", "--payload", '{"id": 7}', "--key", "order-7")
    assert workspace.data(*emit)["is_new"] is True
    assert workspace.ok(*emit, "--output", "json").data["is_new"] is False
    workspace.ok("run-due", "--quiet")
    (run,) = workspace.data("run", "ls", "--job", "on-order")
    assert json.loads(workspace.ok("run", "logs", str(run["id"])).out) == {"id": 7}
    (event,) = workspace.data("event", "ls")
    assert event["processed_at"] is not None


def test_a_job_that_is_off_holds_its_runs_and_says_so(workspace: Workspace) -> None:
    workspace.ok("job", "disable", "hello")
    asked = workspace.ok("job", "run", "hello")
    assert "disabled" in asked.err
    workspace.ok("run-due", "--quiet")
    explained = workspace.data("job", "explain", "hello")
    assert explained["reasons"][0]["cause"] == "paused"


def test_a_job_with_nothing_waiting_explains_when_it_is_due(workspace: Workspace) -> None:
    assert "Next run" in workspace.data("job", "explain", "hello")["why"]


def test_who_leads_and_who_works_is_seen_afterwards(workspace: Workspace) -> None:
    run_of(workspace, "hello")
    workspace.ok("run-due", "--quiet")
    lead = workspace.data("leader", "show")
    assert (lead["epoch"], lead["is_valid"]) == (1, False)
    (worker,) = workspace.data("worker", "ls", "--all")
    assert worker["state"] == "GONE"
    assert workspace.run("leader", "step-down", "--yes").code == 6


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("run", "show", "99"), 4),
        (("run", "logs", "99"), 4),
        (("run", "explain", "99"), 4),
        (("run", "cancel", "99"), 4),
        (("run", "retry", "99"), 4),
        (("run", "retry", "1", "--timeout", "5"), 2),
        (("run-due", "--metrics-port", "9100"), 2),
        (("run", "show", "zero"), 2),
        (("run", "ls", "--state", "LOST"), 2),
        (("run", "ls", "--job", "unknown"), 4),
        (("job", "run", "unknown"), 4),
        (("job", "run", "hello", "--args", "{"), 2),
        (("job", "run", "hello", "--args", "[]"), 2),
        (("job", "run", "hello", "--arg", "novalue"), 2),
        (("job", "run", "hello", "--priority", "9999"), 2),
        (("job", "run", "hello", "--delay", "-1"), 2),
        (("job", "run", "hello", "--delay", "soon"), 2),
        (("job", "run", "hello", "--timeout", "5"), 2),
        (("event", "emit", "x", "--payload", "{"), 2),
        (("event", "emit", ""), 2),
        (("worker", "drain", "unknown"), 4),
        (("worker", "detach", "unknown", "--yes"), 4),
        (("worker", "detach", "unknown"), 4),
        (("leader", "step-down"), 2),
        (("up", "--lead-only", "--work-only"), 2),
        (("up", "--capacity", "0"), 2),
    ],
)
def test_a_mistake_has_its_exit_code_and_a_sentence(
    workspace: Workspace, words: tuple[str, ...], code: int
) -> None:
    ended = workspace.run(*words, "--output", "json")
    assert ended.code == code
    assert ended.error["message"]
    assert ended.error["hint"]


@pytest.mark.parametrize("output", ["table", "json", "jsonl", "plain"])
def test_every_listing_prints_in_every_format(workspace: Workspace, output: str) -> None:
    run_of(workspace, "hello")
    workspace.ok("event", "emit", "x")
    for words in (("run", "ls"), ("event", "ls"), ("leader", "show"), ("run", "show", "1")):
        assert workspace.ok(*words, "--output", output).out


def test_no_runs_at_all_and_none_of_those_asked_for_are_told_apart(workspace: Workspace) -> None:
    assert "no runs yet" in workspace.ok("run", "ls").err
    run_of(workspace, "hello")
    assert workspace.ok("run", "ls", "--state", "RUNNING").err == "no matching runs\n"
    assert workspace.ok("run", "ls", "--worker", "unknown").err == "no matching runs\n"


def test_a_delay_may_be_said_as_a_duration(workspace: Workspace) -> None:
    run_id = str(workspace.data("job", "run", "hello", "--delay", "1h30m")["run_id"])
    run = workspace.data("run", "show", run_id)
    due, created = (datetime.fromisoformat(run[key]) for key in ("scheduled_for", "created_at"))
    assert timedelta(minutes=89) < due - created < timedelta(minutes=91)


def test_the_end_of_a_watched_run_is_told_with_its_error(workspace: Workspace) -> None:
    add(workspace, "bad", "sh", "-c", "exit 3")
    asked = ("job", "run", "bad", "--key", "once")
    run_id = workspace.data(*asked)["run_id"]
    workspace.run("run-due", "--quiet")
    ended = workspace.run(*asked, "--watch", "-o", "json")
    assert ended.code == 1
    assert ended.data == {
        "run_id": run_id,
        "state": "FAILED",
        "result": None,
        "reason": "handler_failed",
        "error": "exit code 3",
    }


def test_what_was_stopped_or_sent_away_is_an_object_for_a_machine(workspace: Workspace) -> None:
    with opened(f"sqlite:///{workspace.database}") as database:
        add_worker(database)
        add_worker(database, "other")
        take_lead(database)
    run_id = run_of(workspace, "hello")
    (canceled,) = workspace.data("run", "cancel", str(run_id))
    assert (canceled["id"], canceled["state"]) == (run_id, "CANCELED")
    assert workspace.data("worker", "drain", WORKER)["state"] == "DRAINING"
    assert workspace.data("worker", "detach", "other", "--yes")["state"] == "DETACHED"
    assert workspace.data("leader", "step-down", "--yes")["is_valid"] is False


def test_runs_are_found_by_time_reason_and_text(workspace: Workspace) -> None:
    workspace.ok("job", "disable", "hello")
    add(workspace, "bad", "sh", "-c", "echo 'no such Book' >&2; exit 3")
    add(workspace, "good", "true")
    bad, good = run_of(workspace, "bad"), run_of(workspace, "good")
    workspace.run("run-due", "--quiet")

    def found(*words: str) -> list[int]:
        return [run["id"] for run in workspace.data("run", "ls", *words)]

    assert found("--since", "1h") == [good, bad]
    assert found("--until", "2001-01-01") == []
    assert found("--since", "2001-01-01T06:30", "--until", "2999-01-01") == [good, bad]
    assert found("--reason", "handler_failed") == [bad]
    assert found("--search", "book") == [bad]
    assert found("--search", "GOOD") == [good]
    assert workspace.run("run", "ls", "--since", "yesterday").code == 2


def test_a_waiting_run_of_a_list_has_its_reason(workspace: Workspace) -> None:
    run_id = workspace.data("job", "run", "hello", "--delay", "1h")["run_id"]
    (waiting,) = workspace.data("run", "ls", "--state", "pending")
    assert (waiting["id"], waiting["waits_for"]["cause"]) == (run_id, "not_due")
    workspace.ok("run", "cancel", str(run_id))
    assert workspace.data("run", "ls", "--state", "skipped") == []
    (canceled,) = workspace.data("run", "ls", "--state", "canceled")
    assert (canceled["outcome"], canceled["waits_for"]) == ("canceled", None)


def test_a_skipped_run_is_called_skipped_and_its_stored_state_is_told_to_machines(
    workspace: Workspace,
) -> None:
    run_id = run_of(workspace, "hello")
    with opened(f"sqlite:///{workspace.database}") as database:
        term = take_lead(database)
        with database.write() as connection:
            skipped = [moves.RunRef(id=run_id, version=1)]
            assert moves.skip(connection, term=term, runs=skipped, reason=Reason.OVERLAP)
    words = ("run", "ls"), ("run", "show", str(run_id)), ("run", "explain", str(run_id))
    for command in words:
        found = workspace.data(*command)
        (run,) = found if isinstance(found, list) else [found]
        assert (run["state"], run["outcome"]) == ("CANCELED", "skipped")
        shown = workspace.ok(*command)
        assert "SKIPPED" in shown.out.partition("FROM")[0] + shown.err
    assert "\tSKIPPED\t" in workspace.ok("run", "ls", "-o", "plain").out
    watched = workspace.run("run", "watch", str(run_id))
    assert (watched.code, "SKIPPED" in watched.out) == (1, True)


def test_a_log_without_a_line_says_so(workspace: Workspace) -> None:
    add(workspace, "silent", "true")
    run_id = run_of(workspace, "silent")
    workspace.ok("run-due")
    ended = workspace.ok("run", "logs", str(run_id))
    assert (ended.out, ended.err) == ("", "No output.\n")
