"""`tsuzuki books`, `tsuzuki job cursor` and books through `tsuzuki run-due`, typed as a person would."""

import signal
from collections.abc import Iterator

import pytest

from support.daemons import eventually
from support.workspace import Workspace
from tsuzuki.collectors.books.query_set import compute_query_set_hash, short_hash
from tsuzuki.collectors.books.sandbox.google_books import GoogleBooks, volumes
from tsuzuki.collectors.books.sandbox.smtp import MailServer, SmtpStep
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind
from tsuzuki.sandbox.server import StandIn

KEY = "k3y-that-stays-secret"


@pytest.fixture
def source() -> GoogleBooks:
    return GoogleBooks(catalogue=volumes(120), key=KEY)


@pytest.fixture
def server(source: GoogleBooks) -> Iterator[StandIn]:
    with StandIn(source) as server:
        yield server


@pytest.fixture
def mail_server() -> Iterator[MailServer]:
    with MailServer() as server:
        yield server


@pytest.fixture
def shop(workspace: Workspace, server: StandIn, mail_server: MailServer) -> Workspace:
    """A workspace with one books job that is due at once."""
    workspace.file.write_text(
        f"""
books:
  base_url: {server.url}/books/v1
  api_key: ${{BOOKS_KEY}}
  mail:
    host: {mail_server.host}
    port: {mail_server.port}
    encryption: none
    from: tsuzuki@example.org
    to: [reader@example.org]
jobs:
  novelties:
    type: books
    queries: [python]
    max_per_run: 50
    mail_limit: 3
    on_event: look
"""
    )
    return workspace


def run_due(shop: Workspace) -> int:
    """What is asked for by an event is due at once."""
    shop.ok("event", "emit", "look", BOOKS_KEY=KEY)
    return shop.run("run-due", BOOKS_KEY=KEY).code


def cursor(shop: Workspace) -> tuple[int, bool]:
    (found,) = [one for one in shop.data("job", "cursor", "ls") if one["is_current"]]
    return found["start_index"], found["is_exhausted"]


def last_log(shop: Workspace) -> str:
    (run, *_) = shop.data("run", "ls")
    return shop.ok("run", "logs", str(run["id"])).out


# --- run-due --------------------------------------------------------------------------------------


def test_run_due_keeps_the_cursor_and_goes_on_next_time(shop: Workspace, server: StandIn) -> None:
    assert run_due(shop) == 0
    assert cursor(shop) == (50, False)
    assert run_due(shop) == 0
    assert cursor(shop) == (100, False)
    starts = [int(seen.request.query["startIndex"]) for seen in server.requests]
    assert starts == [0, 40, 50, 90]


def test_run_due_with_other_queries_starts_with_a_new_cursor(shop: Workspace) -> None:
    run_due(shop)
    shop.file.write_text(shop.file.read_text().replace("[python]", "[python, things]"))
    run_due(shop)
    found = shop.data("job", "cursor", "ls", "novelties")
    assert [(one["start_index"], one["is_current"]) for one in found] == [(50, False), (50, True)]
    assert len({one["query_set_hash"] for one in found}) == 2


def test_run_due_skips_what_is_exhausted_and_goes_on_after_a_reset(
    shop: Workspace, source: GoogleBooks, server: StandIn
) -> None:
    source.catalogue = volumes(10)
    run_due(shop)
    assert cursor(shop) == (10, True)
    asked = server.count()
    assert run_due(shop) == 0
    assert server.count() == asked
    assert "[novelties] Skipped: exhausted (query_set_hash=" in last_log(shop)
    shop.ok("job", "cursor", "reset", "novelties", "--yes")
    assert shop.data("job", "cursor", "ls") == []
    run_due(shop)
    assert server.count() == asked + 2


@pytest.mark.parametrize("options", [(), ("--quiet",), ("--output", "json")])
def test_run_due_warns_on_the_console_of_what_is_exhausted(
    shop: Workspace, source: GoogleBooks, options: tuple[str, ...]
) -> None:
    source.catalogue = volumes(10)
    warned = []
    for _ in range(2):
        shop.ok("event", "emit", "look")
        ended = shop.ok("run-due", *options, BOOKS_KEY=KEY)
        warned += [line for line in ended.err.splitlines() if "query_set_hash=" in line]
    short = short_hash(compute_query_set_hash(["python"]))
    first, second = warned
    assert (
        "[WARN][google-books][novelties] Exhausted: startIndex=10 >= totalItems=10 "
        f"(query_set_hash={short}...)"
    ) in first
    assert f" [novelties] Skipped: exhausted (query_set_hash={short})" in second


def test_run_due_goes_on_after_an_error_and_after_the_quota(
    shop: Workspace, server: StandIn
) -> None:
    server.faults.add(StandInFault(status=400, skip=1))
    assert run_due(shop) == 1
    assert cursor(shop) == (40, False)
    shop.file.write_text(shop.file.read_text().replace("  mail:", "  daily_limit: 3\n  mail:"))
    assert run_due(shop) == 0
    assert cursor(shop) == (80, False)
    shop.file.write_text(shop.file.read_text().replace("daily_limit: 3", "daily_limit: 90"))
    assert run_due(shop) == 0
    assert cursor(shop) == (120, True)


# --- job cursor -----------------------------------------------------------------------------------


def test_reset_without_yes_is_an_error_and_changes_nothing(shop: Workspace) -> None:
    run_due(shop)
    before = shop.data("job", "cursor", "ls")
    ended = shop.run("job", "cursor", "reset", "novelties")
    assert ended.code == 2
    assert "requires --yes" in ended.err
    assert shop.data("job", "cursor", "ls") == before


def test_reset_with_yes_says_how_many_and_is_audited(shop: Workspace) -> None:
    run_due(shop)
    ended = shop.ok("job", "cursor", "reset", "novelties", "--yes", "--quiet")
    assert (ended.out, ended.err) == ("Reset 1 cursor(s) for job: novelties\n", "")
    (entry, *_) = shop.data("audit", "ls")
    assert entry["action"] == "books.cursor.reset"
    assert shop.data("job", "cursor", "reset", "novelties", "--yes") == {
        "job": "novelties",
        "reset": 0,
    }


def test_an_unknown_job_is_not_found(shop: Workspace) -> None:
    shop.ok("job", "apply")
    for words in (
        ("job", "cursor", "reset", "novelty", "--yes"),
        ("job", "cursor", "ls", "novelty"),
        ("books", "preview", "novelty"),
        ("books", "ls", "--job", "novelty"),
        ("books", "collect", "novelty"),
    ):
        ended = shop.run(*words)
        assert ended.code == 4
        assert "novelties" in ended.err


# --- books ----------------------------------------------------------------------------------------


def test_collect_runs_a_job_without_an_engine_around(
    shop: Workspace, mail_server: MailServer
) -> None:
    ended = shop.run("books", "collect", "novelties", "--output", "json", BOOKS_KEY=KEY)
    assert ended.code == 0
    assert ended.data["result"]["collect"]["new_books"] == 50
    assert len(mail_server.messages) == 1
    found = shop.data("books", "ls", "--job", "novelties", "--limit", "1000")
    assert len(found) == 50
    assert len(shop.data("books", "ls", "--job", "novelties", "--undelivered")) == 47
    (one,) = shop.data("books", "ls", "--search", "9780000000002")
    assert one["volume_id"] == "vol000000000"


def test_the_quota_is_shown(shop: Workspace) -> None:
    shop.ok("books", "collect", "novelties", "--no-mail", BOOKS_KEY=KEY)
    use = shop.data("books", "quota", BOOKS_KEY=KEY, DAILY_BOOKS_API_LIMIT="5")
    assert (use["calls"], use["limit"], use["left"]) == (2, 5, 3)


def test_a_missing_key_fails_the_run_with_what_to_do_and_touches_no_cursor(
    shop: Workspace,
) -> None:
    shop.file.write_text(shop.file.read_text().replace("  api_key: ${BOOKS_KEY}\n", ""))
    ended = shop.run("books", "collect", "novelties", "--output", "json")
    assert ended.code == 1
    assert "no API key for Google Books" in ended.data["error"]
    assert shop.data("job", "cursor", "ls") == []


def test_a_wrong_key_is_told_and_never_shown(shop: Workspace) -> None:
    ended = shop.run("books", "collect", "novelties", "--verbose", BOOKS_KEY="wr0ng")
    assert ended.code == 1
    assert "does not accept the API key" in ended.out
    everything = ended.out + ended.err + last_log(shop) + str(shop.data("run", "show", "1"))
    assert "wr0ng" not in everything
    assert b"wr0ng" not in b"".join(shop.content().values())


def test_preview_and_dry_run_send_nothing_and_change_nothing(
    shop: Workspace, mail_server: MailServer
) -> None:
    shop.ok("books", "collect", "novelties", "--no-mail", BOOKS_KEY=KEY)
    before = shop.data("books", "mail")
    first = shop.ok("books", "preview", "novelties")
    assert "3 new books" in first.out
    assert "<li>" in shop.ok("books", "preview", "novelties", "--html").out
    assert shop.ok("books", "mail", "novelties", "--dry-run").out == first.out
    assert (shop.data("books", "mail"), mail_server.messages) == (before, [])
    shop.ok("books", "mail", "novelties", BOOKS_KEY=KEY)
    assert len(mail_server.messages) == 1


def test_an_unsettled_mail_is_shown_and_settled_by_a_person(
    shop: Workspace, mail_server: MailServer
) -> None:
    mail_server.fail_at(SmtpStep.ANSWER)
    ended = shop.run("books", "collect", "novelties", "--output", "json", BOOKS_KEY=KEY)
    assert (ended.code, ended.data["state"]) == (1, "FAILED")
    assert ended.data["error"].startswith("mail_unsettled: it is unknown whether email 1 arrived")
    assert ended.data["result"]["mail"] == {"mails": [], "unsettled": [1]}
    assert ended.data["result"]["collect"]["new_books"] == 50
    listed = shop.ok("books", "mail")
    assert "unsettled" in listed.out
    assert "it is unknown whether 1 arrived" in listed.err
    assert shop.run("books", "mail", "--mark-sent", "1").code == 2
    for decision in ("--mark-sent", "--resend"):
        refused = shop.run("books", "mail", decision, "1", "--dry-run", "--yes")
        assert (refused.code, "--dry-run" in refused.err) == (2, True)
    assert shop.data("books", "mail")[0]["state"] == "unsettled"
    assert shop.run("books", "mail", "--mark-sent", "9", "--yes").code == 4
    assert shop.data("books", "mail", "--mark-sent", "1", "--yes")["state"] == "sent"
    assert shop.run("books", "mail", "--resend", "1", "--yes").code == 6
    assert shop.run("books", "mail", "novelties", "--resend", "1").code == 2


def test_what_was_mailed_is_reset_and_mailed_again(
    shop: Workspace, mail_server: MailServer
) -> None:
    shop.ok("books", "collect", "novelties", BOOKS_KEY=KEY)
    shop.ok("books", "mail", "novelties", BOOKS_KEY=KEY)
    reset = {"job": "novelties", "mails": 2, "books": 6, "kept": []}
    assert shop.data("books", "mail", "reset", "novelties", "--dry-run") == reset
    refused = shop.run("books", "mail", "reset", "novelties")
    assert (refused.code, "6 book(s) of 2 email(s)" in refused.err) == (2, True)
    ended = shop.ok("books", "mail", "reset", "novelties", "--yes", "--quiet")
    assert ended.out == "Reset 6 emailed book(s) for job: novelties\n"
    assert shop.data("audit", "ls")[0]["action"] == "books.mail.reset"
    assert len(shop.data("books", "ls", "--job", "novelties", "--undelivered")) == 50
    shop.ok("books", "mail", "novelties", BOOKS_KEY=KEY)
    first, _, again = (message.get_body(["plain"]) for message in mail_server.messages)
    assert str(first) == str(again)
    assert shop.data("books", "mail", "reset", "novelties", "--yes")["books"] == 3


def test_a_reset_of_mails_without_a_books_job_is_refused(shop: Workspace) -> None:
    shop.ok("job", "apply")
    assert shop.run("books", "mail", "reset", "novelty", "--yes").code == 4
    for words in (("novelties", "reset"), ("reset", "novelties", "more")):
        assert shop.run("books", "mail", *words, "--yes").code == 2
    assert shop.run("books", "mail", "reset", "novelties", "--resend", "1", "--yes").code == 2


# --- one job, and only that -----------------------------------------------------------------------


@pytest.fixture
def shop_and_more(shop: Workspace) -> Workspace:
    """The shop beside a command and another books job, both of them due."""
    shop.file.write_text(
        shop.file.read_text()
        + """
  hello:
    command: [echo, hello]
    on_event: look
  others:
    type: books
    queries: [things]
    on_event: look
"""
    )
    return shop


@pytest.mark.parametrize("command", ["collect", "mail"])
def test_a_job_that_is_no_books_job_is_refused_and_nothing_runs(
    shop_and_more: Workspace, command: str
) -> None:
    ended = shop_and_more.run("books", command, "hello", BOOKS_KEY=KEY)
    assert ended.code == 4
    assert "error[not_a_books_job]: 'hello' is not a books job: its type is command" in ended.err
    assert "tsuzuki job run hello" in ended.err
    assert shop_and_more.data("run", "ls") == []


@pytest.mark.parametrize("command", ["collect", "mail"])
def test_other_jobs_that_are_due_are_left_alone(shop_and_more: Workspace, command: str) -> None:
    shop_and_more.ok("job", "apply")
    shop_and_more.ok("job", "run", "hello")
    shop_and_more.ok("event", "emit", "look")
    shop_and_more.ok("books", command, "novelties", BOOKS_KEY=KEY)
    ended = {run["job_name"]: run["state"] for run in shop_and_more.data("run", "ls")}
    assert ended.pop("novelties") == "SUCCEEDED"
    assert set(ended.values()) <= {"PENDING"}
    assert shop_and_more.run("run-due", BOOKS_KEY=KEY).code == 0
    assert {run["state"] for run in shop_and_more.data("run", "ls")} == {"SUCCEEDED"}


# --- before there is a key, or anything else --------------------------------------------------------


def test_quota_and_preview_need_no_key_and_no_applied_job(shop: Workspace) -> None:
    assert shop.data("books", "quota")["left"] == 100
    ended = shop.ok("books", "preview", "novelties")
    assert "There is nothing to email." in ended.err
    assert shop.ok("books", "mail", "novelties", "--dry-run").out == ""
    assert shop.data("run", "ls") == []


def test_a_preview_follows_the_file_before_it_is_applied(shop: Workspace) -> None:
    shop.ok("books", "collect", "novelties", "--no-mail", BOOKS_KEY=KEY)
    shop.file.write_text(shop.file.read_text().replace("mail_limit: 3", "mail_limit: 7"))
    assert len(shop.data("books", "preview", "novelties")["books"]) == 7


# --- what a collection says at its end ------------------------------------------------------------


def test_a_collection_ends_in_sentences_and_a_table(shop: Workspace, source: GoogleBooks) -> None:
    source.catalogue = volumes(60)
    first = shop.ok("books", "collect", "novelties", BOOKS_KEY=KEY)
    assert "Collected 50 results on 2 pages; 50 new books." in first.err
    assert "max_per_run is reached; the next run of novelties continues at index 50." in first.err
    assert "Email 1 was accepted by the server." in first.err
    heads, figures = first.out.splitlines()
    assert heads.split() == "PAGES RETURNED NEW BOOKS NEXT INDEX STOPPED BY".split()
    assert figures.split() == ["2", "50", "50", "50", "max_per_run"]
    second = shop.ok("books", "collect", "novelties", "--no-mail", BOOKS_KEY=KEY)
    assert "The search is exhausted at index 60: there are no more results." in second.err
    third = shop.ok("books", "collect", "novelties", "--no-mail", BOOKS_KEY=KEY)
    assert "tsuzuki job cursor reset novelties --yes" in third.err
    assert third.out == ""


def test_a_used_up_quota_says_when_it_goes_on(shop: Workspace) -> None:
    ended = shop.ok("books", "collect", "novelties", BOOKS_KEY=KEY, DAILY_BOOKS_API_LIMIT="1")
    assert "Today's quota is used up; collection continues at index 40 at 20" in ended.err


def test_an_unsettled_mail_is_told_with_what_to_do(
    shop: Workspace, mail_server: MailServer
) -> None:
    mail_server.fail_at(SmtpStep.GARBAGE)
    ended = shop.run("books", "collect", "novelties", BOOKS_KEY=KEY)
    assert ended.code == 1
    assert "it is unknown whether email 1 arrived" in ended.err
    assert "--mark-sent 1 --yes" in ended.err
    assert "mail_unsettled" in ended.out
    again = shop.ok("books", "mail", "novelties", BOOKS_KEY=KEY)
    assert "it is unknown whether email 1 arrived" in again.err


@pytest.mark.slow
def test_interrupted_while_the_source_hangs_it_ends_at_once_and_leaves_no_other_run(
    shop: Workspace, server: StandIn
) -> None:
    server.faults.add(StandInFault(kind=StandInFaultKind.HANG, times=None))
    command = shop.start("books", "collect", "novelties", BOOKS_KEY=KEY)
    eventually(lambda: server.faults.held > 0, what="the source to hang")
    command.send_signal(signal.SIGINT)
    assert command.wait(120) == 130
    assert [run["state"] for run in shop.data("run", "ls")] == ["CANCELED"]


@pytest.mark.slow
def test_after_the_time_that_was_given_it_is_cancelled_and_leaves_no_other_run(
    shop: Workspace, server: StandIn
) -> None:
    server.faults.add(StandInFault(kind=StandInFaultKind.HANG, times=None))
    ended = shop.forked("books", "collect", "novelties", "--timeout", "1", BOOKS_KEY=KEY)
    assert (ended.code, ended.out) == (124, "")
    assert "The run was canceled" in ended.err
    assert "The run continues" not in ended.err
    assert [run["state"] for run in shop.data("run", "ls")] == ["CANCELED"]
