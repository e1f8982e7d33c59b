"""Select and send emails: the books a job has found and not emailed yet, each book once.

Three steps are stored: the intent, before the server is contacted; the permission to send, before the message
leaves; the acceptance, after the server's response. After a crash before the permission, the next run sends the
same email. After a crash later, or an unclear response, the email is unsettled and must be resolved by a person: a
sent email cannot be looked up, and is never sent a second time automatically.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from tsuzuki.collectors.books.book import Book
from tsuzuki.collectors.books.digest import compose, message_of
from tsuzuki.collectors.books.options import BooksOptions
from tsuzuki.collectors.books.queries import books, outbox
from tsuzuki.collectors.books.queries.outbox import Mail
from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.errors import IncompleteRun
from tsuzuki.outward.outbox import OutboxState
from tsuzuki.outward.smtp import MailDelivery, MailFailed, MailRefused, SmtpServer
from tsuzuki.store.sql.database import Connection, Database

MAILS_PER_RUN_MAX = 10


def select_books(connection: Connection, job_name: str, options: BooksOptions) -> list[Book]:
    """The books of the next mail: what the job has found, or, if there is nothing left of that, what
    other jobs have. Nothing that the job has mailed before."""
    own = books.undelivered(connection, job_name, limit=options.mail_limit)
    if own or options.mail_limit == 0:
        return own
    return books.found_by_others(connection, job_name, limit=options.fallback_limit)


UNKNOWN = "the server's response did not arrive or was not understood"


@dataclass(frozen=True, kw_only=True)
class Mailed:
    """What came of the mails of one run, by their ids."""

    sent: tuple[int, ...] = ()
    newly_unsettled: tuple[int, ...] = ()
    """It became unknown, or was found out by this run, whether they arrived."""

    unsettled: tuple[int, ...] = ()
    """All of the job that wait for a person's word, those of earlier runs too."""

    def as_dict(self) -> dict[str, Any]:
        return {"mails": list(self.sent), "unsettled": list(self.unsettled)}


class MailUnsettled(IncompleteRun):
    """The rest of the run is done, and it is not known whether a mail arrived."""

    code = "mail_unsettled"

    def __init__(self, mail_ids: Sequence[int], *, result: dict[str, Any]) -> None:
        named = ", ".join(map(str, mail_ids))
        super().__init__(
            f"it is unknown whether email {named} arrived",
            hint=f"Check, then use: {_decisions(mail_ids[0])}",
            result=result,
        )


def _decisions(mail_id: int) -> str:
    """What a person may say of an unsettled mail."""
    return (
        f"tsuzuki books mail --mark-sent {mail_id} --yes, "
        f"or: tsuzuki books mail --resend {mail_id} --yes"
    )


class _TakenByAnother(Exception):
    """Another run sends this mail."""


class Mailing:
    """The mails of one run."""

    def __init__(
        self, *, run: RunContext, database: Database, options: BooksOptions, server: SmtpServer
    ) -> None:
        self._run = run
        self._database = database
        self._options = options
        self._server = server
        self._newly_unsettled: list[int] = []

    def send(self) -> Mailed:
        """Send what was intended before, then one mail of what is new."""
        self._settle()
        sent: list[int] = []
        for _ in range(MAILS_PER_RUN_MAX):
            self._run.raise_if_cancelled()
            mail = self._left_over()
            if mail is None:
                break
            if self._deliver(mail):
                sent.append(mail.id)
        mail = self._intend()
        if mail is not None and self._deliver(mail):
            sent.append(mail.id)
        with self._database.read() as connection:
            unsettled = outbox.unsettled(connection, self._run.job_name)
        return Mailed(
            sent=tuple(sent),
            newly_unsettled=tuple(self._newly_unsettled),
            unsettled=tuple(unsettled),
        )

    def _settle(self) -> None:
        with self._run.transaction() as connection:
            lost = outbox.settle(connection, self._run.job_name, now=self._database.now(connection))
        for mail in lost:
            self._note_unsettled(mail.id)

    def _left_over(self) -> Mail | None:
        with self._database.read() as connection:
            return outbox.oldest_intended(connection, self._run.job_name)

    def _intend(self) -> Mail | None:
        with self._run.transaction() as connection:
            outbox.lock_selection(connection, self._run.job_name)
            selected = select_books(connection, self._run.job_name, self._options)
            if not selected:
                return None
            now = self._database.now(connection)
            return outbox.intend(
                connection,
                job_name=self._run.job_name,
                message_id=self._message_id(selected, now),
                selected=selected,
                now=now,
            )

    def _deliver(self, mail: Mail) -> bool:
        """Hand one mail to the server; false if it was not surely taken, or not ours to send."""
        with self._database.read() as connection:
            selected = outbox.contents(connection, mail.id)
        message = message_of(
            compose(mail.job_name, selected),
            message_id=mail.message_id,
            written_at=mail.created_at,
            sender=self._server.sender,
            recipients=self._server.recipients,
        )
        try:
            delivery = self._server.send(message, lambda: self._go_ahead(mail))
        except _TakenByAnother:
            self._say(f"Email {mail.id} was picked up by another run")
            return False
        except MailRefused as refusal:
            self._move(mail, OutboxState.SENDING, OutboxState.REFUSED, refusal.message)
            raise
        except MailFailed as failure:
            self._move(mail, OutboxState.SENDING, OutboxState.INTENDED, failure.message)
            raise
        if delivery is MailDelivery.UNKNOWN:
            self._move(mail, OutboxState.SENDING, OutboxState.UNSETTLED, UNKNOWN)
            self._note_unsettled(mail.id)
            return False
        self._move(mail, OutboxState.SENDING, OutboxState.SENT)
        self._say(f"Email {mail.id} with {len(selected)} books was accepted by the server")
        return True

    def _go_ahead(self, mail: Mail) -> None:
        if not self._move(mail, OutboxState.INTENDED, OutboxState.SENDING):
            raise _TakenByAnother

    def _move(
        self, mail: Mail, before: OutboxState, after: OutboxState, error: str | None = None
    ) -> bool:
        """Record how far a mail is; what failed before the go-ahead is where it was and stays."""
        with self._run.transaction() as connection:
            return outbox.OUTBOX.move(
                connection,
                mail.id,
                before=before,
                after=after,
                now=self._database.now(connection),
                run_id=self._run.id,
                error=error,
            )

    def _message_id(self, selected: Sequence[Book], now: datetime) -> str:
        """Fixed when the mail is intended, so that a reader who gets it twice can tell."""
        parts = [self._run.job_name, str(self._run.id), now.isoformat()]
        name = sha256("\n".join([*parts, *(book.volume_id for book in selected)]).encode())
        return f"<books.{name.hexdigest()[:32]}@{self._server.domain}>"

    def _say(self, words: str) -> None:
        self._run.log(f"[mail][{self._run.job_name}] {words}")

    def _note_unsettled(self, mail_id: int) -> None:
        self._newly_unsettled.append(mail_id)
        self._run.log(
            f"[WARN][mail][{self._run.job_name}] It is unknown whether email {mail_id} "
            f"arrived. Check, then use: {_decisions(mail_id)}"
        )
