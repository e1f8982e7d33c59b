"""Select and mail: each book once for each job, whatever breaks, and safe for any title."""

from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from tsuzuki.collectors.books.collect import collect
from tsuzuki.collectors.books.mail import MailUnsettled
from tsuzuki.collectors.books.queries import outbox
from tsuzuki.collectors.books.queries.outbox import Mail
from tsuzuki.collectors.books.sandbox.google_books import volume, volumes
from tsuzuki.collectors.books.sandbox.smtp import MailServer, SmtpStep
from tsuzuki.collectors.books.service import Books
from tsuzuki.config import Configuration
from tsuzuki.model.errors import ConfigurationError, Conflict, Fenced
from tsuzuki.model.run import RunRef
from tsuzuki.outward.outbox import OutboxState
from tsuzuki.outward.smtp import MailFailed, MailRefused
from tsuzuki.sandbox.faults import StandInFault
from tsuzuki.services.jobs import Jobs
from tsuzuki.services.liveness import Liveness
from tsuzuki.services.runs import Runs
from tsuzuki.store import audit
from tsuzuki.store.runs import moves
from tsuzuki.wiring.collector import ServiceContext

from .books_fixture import BooksFixture
from .stored_mails import add_mail

SETTINGS = {
    "encryption": "none",
    "from": "Tsuzuki <tsuzuki@example.org>",
    "to": "reader@example.org, second@example.org",
}


@pytest.fixture
def mail_server() -> Iterator[MailServer]:
    with MailServer() as server:
        yield server


@pytest.fixture
def mailing_books(books_fixture: BooksFixture, mail_server: MailServer) -> BooksFixture:
    books_fixture.section["mail"] = {**SETTINGS, "host": mail_server.host, "port": mail_server.port}
    books_fixture.source.catalogue = volumes(5)
    return books_fixture


@pytest.fixture
def books(books_fixture: BooksFixture) -> Books:
    context, database = books_fixture.collector_context, books_fixture.database
    return Books(
        ServiceContext(
            database=database,
            workspace=context.workspace,
            read_section=context.read_section,
            actor="test",
            jobs=Jobs(database=database, reload=no_file, kinds={}, actor="test"),
            runs=Runs(database=database, actor="test"),
            liveness=Liveness(database=database),
        )
    )


def no_file() -> Configuration:
    """Every job is in the database only."""
    return Configuration(
        workspace=Path(),
        file=None,
        database_url="",
        redis_url=None,
        timezone="UTC",
        log_archive=None,
        jobs=(),
    )


def mails(books_fixture: BooksFixture) -> list[Mail]:
    with books_fixture.database.read() as connection:
        return outbox.find(connection)[::-1]


def states(books_fixture: BooksFixture) -> list[str]:
    return [mail.state.value for mail in mails(books_fixture)]


def titles(message: EmailMessage) -> list[str]:
    body = message.get_body(("plain",))
    assert body is not None
    lines = str(body.get_content()).splitlines()
    return [line.removeprefix("* ") for line in lines if line.startswith("* ")]


def parts(numbers: range) -> list[str]:
    return [f"The Python Book of Things, Part {number}" for number in numbers]


# --- what is sent ---------------------------------------------------------------------------------


def test_what_is_new_is_mailed_in_the_order_it_was_found_and_once(
    mailing_books: BooksFixture, mail_server: MailServer
) -> None:
    for _ in range(4):
        mailing_books.start(mail_limit=2).work()
    assert [titles(message) for message in mail_server.messages] == [
        parts(range(2)),
        parts(range(2, 4)),
        parts(range(4, 5)),
    ]
    assert states(mailing_books) == ["sent"] * 3


def test_a_mail_has_text_and_html_and_every_header_it_needs(
    mailing_books: BooksFixture, mail_server: MailServer
) -> None:
    mailing_books.start().work()
    (message,) = mail_server.messages
    assert message["Subject"] == "[novelties] 5 new books: The Python Book of Things, Part 0"
    assert message["From"] == "Tsuzuki <tsuzuki@example.org>"
    assert message["To"] == "reader@example.org, second@example.org"
    assert message["Message-ID"] == mails(mailing_books)[0].message_id
    assert message["Message-ID"].endswith("@example.org>")
    html = message.get_body(("html",))
    assert html is not None
    assert 'href="https://books.example/volume?id=vol000000000"' in html.get_content()


def test_two_jobs_mail_the_same_book_each_once(
    mailing_books: BooksFixture, mail_server: MailServer
) -> None:
    for name in ("first", "second", "first", "second"):
        mailing_books.start(name).work()
    assert [message["Subject"].split("]")[0] for message in mail_server.messages] == [
        "[first",
        "[second",
    ]


def test_the_fallback_is_what_other_jobs_found_and_only_when_there_is_nothing_else(
    mailing_books: BooksFixture, mail_server: MailServer
) -> None:
    mailing_books.start("wide", arguments={"mail": False}).work()
    mailing_books.source.catalogue = volumes(1)
    for _ in range(4):
        mailing_books.start("narrow", mail_limit=10, fallback_limit=3).work()
    assert [len(titles(message)) for message in mail_server.messages] == [1, 3, 1]
    sent = [title for message in mail_server.messages for title in titles(message)]
    assert sorted(sent) == parts(range(5))


def test_a_mail_limit_of_zero_and_a_run_without_mail_send_nothing(
    mailing_books: BooksFixture, mail_server: MailServer
) -> None:
    mailing_books.start(mail_limit=0, fallback_limit=5).work()
    mailing_books.start(arguments={"mail": False}).work()
    assert mail_server.messages == []
    assert mails(mailing_books) == []


def test_what_was_collected_is_mailed_even_if_the_source_fails(
    mailing_books: BooksFixture, mail_server: MailServer
) -> None:
    mailing_books.source.catalogue = volumes(60)
    mailing_books.server.faults.add(StandInFault(status=400, skip=1))
    with pytest.raises(Exception, match="Google Books answered 400"):
        mailing_books.start(mail_limit=50).work()
    assert len(titles(mail_server.messages[0])) == 40


def test_a_preview_sends_nothing_and_changes_nothing(
    mailing_books: BooksFixture, mail_server: MailServer, books: Books
) -> None:
    mailing_books.start(arguments={"mail": False}).work()
    shown = books.preview("novelties")
    assert shown.digest is not None
    assert shown.digest.subject.startswith("[novelties] 5 new books")
    assert mail_server.messages == []
    assert mails(mailing_books) == []
    mailing_books.start(arguments={"collect": False}).work()
    assert mail_server.messages[0]["Subject"] == shown.digest.subject
    assert books.preview("novelties").digest is None


# --- what breaks ----------------------------------------------------------------------------------


def test_a_server_that_is_away_leaves_the_mail_for_the_next_run(
    mailing_books: BooksFixture, mail_server: MailServer
) -> None:
    there = mailing_books.section["mail"]
    mailing_books.section["mail"] = {**there, "port": 1}
    with pytest.raises(MailFailed, match="is unreachable"):
        mailing_books.start().work()
    assert states(mailing_books) == ["intended"]
    mailing_books.section["mail"] = there
    mailing_books.start().work()
    assert states(mailing_books) == ["sent"]
    assert [len(titles(message)) for message in mail_server.messages] == [5]
    assert mail_server.messages[0]["Message-ID"] == mails(mailing_books)[0].message_id


@pytest.mark.parametrize(
    ("step", "state"), [(SmtpStep.RECIPIENT, "intended"), (SmtpStep.DATA_LATER, "intended")]
)
def test_a_mail_that_was_surely_not_taken_is_sent_by_the_next_run(
    mailing_books: BooksFixture, mail_server: MailServer, step: SmtpStep, state: str
) -> None:
    mail_server.fail_at(step)
    with pytest.raises(MailFailed):
        mailing_books.start().work()
    assert states(mailing_books) == [state]
    mailing_books.start().work()
    assert (states(mailing_books), len(mail_server.messages)) == (["sent"], 1)


def test_a_mail_that_is_refused_for_good_waits_for_a_person(
    mailing_books: BooksFixture, mail_server: MailServer, books: Books
) -> None:
    mail_server.fail_at(SmtpStep.DATA_NEVER)
    with pytest.raises(MailRefused, match="554"):
        mailing_books.start().work()
    mailing_books.start().work()
    assert (states(mailing_books), mail_server.messages) == (["refused"], [])
    books.resend(1)
    mailing_books.start().work()
    assert (states(mailing_books), len(mail_server.messages)) == (["sent"], 1)


@pytest.mark.parametrize("reply", ["200 fine", "251 will forward", "252 probably", "299 odd"])
def test_any_reply_that_begins_with_2_is_delivery(
    mailing_books: BooksFixture, mail_server: MailServer, reply: str
) -> None:
    mail_server.taken_reply = reply
    assert mailing_books.start().work()["mail"] == {"mails": [1], "unsettled": []}
    mailing_books.start().work()
    assert (states(mailing_books), len(mail_server.messages)) == (["sent"], 1)


def test_the_mails_of_a_run_are_those_that_it_sent_or_tried_to(
    mailing_books: BooksFixture, mail_server: MailServer, books: Books
) -> None:
    mailing_books.source.catalogue = volumes(8)
    mail_server.fail_at(SmtpStep.ANSWER)
    first = mailing_books.start(max_per_run=5)
    with pytest.raises(MailUnsettled):
        first.work()
    second = mailing_books.start()
    second.work()
    found = [
        [(view.mail.state, view.books) for view in books.mails_of_run(name, run.context.id)]
        for name, run in (("novelties", first), ("novelties", second), ("other", second))
    ]
    assert found == [[("unsettled", 5)], [("sent", 3)], []]


UNKNOWN_REPLIES = ["", "25", "what?", "150 wait", "354 go ahead", "+25 0", "650 more than that"]


@pytest.mark.parametrize("reply", UNKNOWN_REPLIES)
def test_a_reply_that_is_none_leaves_the_mail_unsettled(
    mailing_books: BooksFixture, mail_server: MailServer, reply: str
) -> None:
    mail_server.taken_reply = reply
    with pytest.raises(MailUnsettled):
        mailing_books.start().work()
    mail_server.taken_reply = "250 taken"
    mailing_books.start().work()
    assert (states(mailing_books), len(mail_server.messages)) == (["unsettled"], 1)


@pytest.mark.parametrize("step", [SmtpStep.ANSWER, SmtpStep.GARBAGE])
def test_a_mail_whose_answer_was_never_heard_fails_its_run_and_is_not_sent_again_by_itself(
    mailing_books: BooksFixture, mail_server: MailServer, step: SmtpStep
) -> None:
    mail_server.fail_at(step)
    with pytest.raises(MailUnsettled, match="unknown whether email 1 arrived") as caught:
        mailing_books.start().work()
    assert caught.value.result["collect"]["new_books"] == 5
    assert caught.value.result["mail"] == {"mails": [], "unsettled": [1]}
    assert states(mailing_books) == ["unsettled"]
    assert "It is unknown whether email 1 arrived" in mailing_books.log[-1]
    assert mailing_books.start().work()["mail"] == {"mails": [], "unsettled": [1]}
    assert (states(mailing_books), len(mail_server.messages)) == (["unsettled"], 1)


def test_a_sender_that_was_interrupted_leaves_its_mail_unsettled(
    mailing_books: BooksFixture, mail_server: MailServer
) -> None:
    run = mailing_books.start()

    def lose(_message: object) -> None:
        ref = RunRef(id=run.context.id, version=run.task.started.version)
        with mailing_books.database.write() as connection:
            assert moves.cancel(connection, operator="ada", runs=[ref])

    mail_server.when_taken = lose
    with pytest.raises(Fenced):
        collect(mailing_books.collector_context, run.context)
    assert states(mailing_books) == ["sending"]
    mail_server.forget_hooks()
    with pytest.raises(MailUnsettled, match="mail 1"):
        mailing_books.start().work()
    assert (states(mailing_books), len(mail_server.messages)) == (["unsettled"], 1)


def test_a_mail_that_another_run_is_sending_is_left_alone(
    mailing_books: BooksFixture, mail_server: MailServer
) -> None:
    first, second = mailing_books.start(), mailing_books.start(arguments={"collect": False})
    mail_server.when_taken = lambda _message: second.work()
    first.work()
    assert (states(mailing_books), len(mail_server.messages)) == (["sent"], 1)


def test_two_runs_that_mean_to_send_the_same_mail_send_it_once(
    mailing_books: BooksFixture, mail_server: MailServer
) -> None:
    there = mailing_books.section["mail"]
    mailing_books.section["mail"] = {**there, "port": 1}
    with pytest.raises(MailFailed):
        mailing_books.start().work()
    mailing_books.section["mail"] = there
    first, second = (mailing_books.start(arguments={"collect": False}) for _ in range(2))
    mail_server.when_recipient_named = lambda: (mail_server.forget_hooks(), second.work())
    first.work()
    assert (states(mailing_books), len(mail_server.messages)) == (["sent"], 1)
    assert first.log == ["[mail][novelties] Email 1 was picked up by another run"]


def test_a_person_settles_a_mail_and_the_audit_says_who(
    mailing_books: BooksFixture, mail_server: MailServer, books: Books
) -> None:
    for decide, state in ((books.mark_sent, "sent"), (books.resend, "intended")):
        mailing_books.source.catalogue = volumes(5, first=100 * (len(mails(mailing_books)) + 1))
        mail_server.fail_at(SmtpStep.ANSWER)
        with pytest.raises(MailUnsettled):
            mailing_books.start(f"job-{state}", queries=["python", state]).work()
        unsettled = mails(mailing_books)[-1]
        assert unsettled.state is OutboxState.UNSETTLED
        assert decide(unsettled.id).state == state
        with pytest.raises(Conflict, match=f"is {state}, so there is nothing to resolve"):
            books.mark_sent(unsettled.id)
    with mailing_books.database.read() as connection:
        entries = audit.find(connection, object_type="mail")
    assert [(entry.before, entry.after) for entry in entries] == [
        ("unsettled", "intended"),
        ("unsettled", "sent"),
    ]


def test_a_mail_sent_again_is_the_same_mail(
    mailing_books: BooksFixture, mail_server: MailServer, books: Books
) -> None:
    mail_server.fail_at(SmtpStep.ANSWER)
    with pytest.raises(MailUnsettled):
        mailing_books.start().work()
    books.resend(1)
    mailing_books.start().work()
    first, again = (message.as_bytes() for message in mail_server.messages)
    assert first == again


# --- odd titles and settings ----------------------------------------------------------------------

ODD = {
    "a header": "python\r\nBcc: victim@example.org\r\n\r\nbody",
    "a bell and an escape": "python \x07\x1b[31m red",
    "turned around": "python \u202egnihtemos\u202c \u200f",
    "a script": "<script>alert('python')</script>",
    "a lone surrogate": "python \ud83d half",
    "a NUL": "python\x00zero",
    "line separators": "python\u2028two\u2029three",
    "very long": "python " * 1000,
    "an encoded word": "=?utf-8?q?a=0D=0ABcc:_victim@example.org?= python",
    "Japanese and emoji": "python 入門 👩\u200d💻",
    "a lonely dot": ".\r\n.\r\npython",
}


@pytest.mark.parametrize("dialect", ["sqlite"])
@pytest.mark.parametrize("title", ODD.values(), ids=ODD)
def test_any_title_can_be_mailed(
    mailing_books: BooksFixture, mail_server: MailServer, title: str
) -> None:
    description = ".\n..\n. python\x85"
    link = "javascript:alert(1)"
    mailing_books.source.catalogue = [
        volume(1, title=title, description=description, infoLink=link, authors=["A\r\nTo: x@y"])
    ]
    mailing_books.start().work()
    (message,) = mail_server.messages
    assert message["Bcc"] is None
    assert message.keys().count("To") == 1
    subject = str(message["Subject"])
    assert len(subject) <= 150
    assert not set(subject) & set("\r\n\x00\x07\x1b\u202e\u202c\u200f\u2028\u2029")
    shown = subject.split(": ", 1)[1].removesuffix("...").replace("= ?", "=?")
    assert titles(message)[0].startswith(shown[:100])
    html = message.get_body(("html",))
    assert html is not None
    assert "<script" not in html.get_content()
    assert "javascript:" not in message.as_string()


BAD_SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "no recipient": ({"to": []}, "mail: to"),
    "no sender": ({"from": None}, "mail: from"),
    "an injected header": ({"to": ["a@b\r\nBcc: c@d"]}, "under books.mail.to"),
    "not an address": ({"from": "unknown"}, "under books.mail.from"),
    "not ASCII": ({"to": ["ü@example.org"]}, "under books.mail.to"),
    "a password in the open": (
        {"host": "mail.example.org", "password": "s3cret"},
        "would be sent unencrypted",
    ),
}


@pytest.mark.parametrize("dialect", ["sqlite"])
@pytest.mark.parametrize(("change", "words"), BAD_SETTINGS.values(), ids=BAD_SETTINGS)
def test_bad_mail_settings_are_told_without_the_addresses(
    mailing_books: BooksFixture, change: dict[str, Any], words: str
) -> None:
    mailing_books.section["mail"] = {**mailing_books.section["mail"], **change}
    with pytest.raises(ConfigurationError, match=words) as caught:
        mailing_books.start(arguments={"collect": False}).work()
    assert "@example" not in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_without_a_mail_server_books_are_collected_and_not_mailed(
    books_fixture: BooksFixture,
) -> None:
    assert "mail" not in books_fixture.start().work()
    with pytest.raises(ConfigurationError, match="missing in the section"):
        books_fixture.start(arguments={"collect": False}).work()


def test_a_reset_forgets_the_books_of_sent_mails_alone(
    mailing_books: BooksFixture, books: Books
) -> None:
    states = (
        (OutboxState.SENDING, OutboxState.SENT),
        (),
        (OutboxState.SENDING,),
        (OutboxState.SENDING, OutboxState.REFUSED),
        (OutboxState.SENDING, OutboxState.UNSETTLED),
    )
    with mailing_books.database.write() as connection:
        sent, *others = (
            add_mail(connection, f"volume-{number}", *passed)
            for number, passed in enumerate(states)
        )
    expected = books.preview_mail_reset("novelties")
    assert (expected.mails, expected.books) == (1, 1)
    assert [mail.id for mail in expected.kept] == others
    assert books.reset_mails("novelties") == expected
    assert [view.books for view in reversed(books.mails())] == [0, 1, 1, 1, 1]
    assert books.mail(sent).mail.state is OutboxState.SENT
    assert books.reset_mails("novelties").books == 0


def test_after_a_reset_the_same_books_are_mailed_once_more(
    mailing_books: BooksFixture, books: Books, mail_server: MailServer
) -> None:
    for _ in range(2):
        mailing_books.start().work()
    assert len(mail_server.messages) == 1
    assert books.reset_mails("novelties").books == 5
    for _ in range(2):
        mailing_books.start().work()
    first, second = (message["Subject"] for message in mail_server.messages)
    assert first == second
    assert len({message["Message-ID"] for message in mail_server.messages}) == 2
