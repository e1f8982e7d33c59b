"""The mail server, talked to step by step: up to its go-ahead nothing has been sent, after it everything
is, and in between stands a call of whoever must record that. What is not known afterwards is said so.

    connect, greet, encrypt, sign in, MAIL, RCPT, DATA → 354 │ `before_sending()` │ the message → its answer

Addresses and passwords are in no message of ours.
"""

import re
import smtplib
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import parseaddr
from enum import Enum, auto

from tsuzuki.collectors.books.options import Encryption, MailSection
from tsuzuki.model.errors import ConfigurationError, Unreachable

TIMEOUT_SECONDS = 30.0
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
_ADDRESS = re.compile(r"[!-?A-~]{1,64}@[A-Za-z0-9.\[\]:-]{1,255}")


class MailFailed(Unreachable):
    """The server did not take the mail, and surely has not sent it."""

    code = "mail"


class MailRefused(MailFailed):
    """The server will not take this mail, however often it is tried."""

    code = "mail_refused"
    permanent = True


class Delivery(Enum):
    """What is known once the message has left."""

    ACCEPTED = auto()
    UNKNOWN = auto()
    """The connection ended before the answer."""


@dataclass(frozen=True, kw_only=True)
class SmtpServer:
    """A server and the addresses to use with it, checked."""

    host: str
    port: int
    encryption: Encryption
    user: str | None = field(repr=False)
    password: str | None = field(repr=False)
    sender: str = field(repr=False)
    recipients: tuple[str, ...] = field(repr=False)

    @property
    def domain(self) -> str:
        """Where our messages come from, for their names."""
        return address_in(self.sender).rpartition("@")[2]

    def send(self, message: EmailMessage, before_sending: Callable[[], None]) -> Delivery:
        """Have a message taken by the server. Raises `MailFailed` as long as it surely was not;
        whatever `before_sending` raises leaves the message unsent as well."""
        body = re.sub(rb"(?m)^\.", b"..", message.as_bytes())
        with self._session() as session:
            self._envelope(session)
            _expect(session.docmd("DATA"), 354)
            before_sending()
            try:
                session.send(body + (b"" if body.endswith(b"\r\n") else b"\r\n") + b".\r\n")
                answer = session.getreply()
            except (OSError, smtplib.SMTPException):
                return Delivery.UNKNOWN
            _expect(answer, 250)
            with suppress(OSError, smtplib.SMTPException):
                session.quit()
            return Delivery.ACCEPTED

    @contextmanager
    def _session(self) -> Iterator[smtplib.SMTP]:
        try:
            session = self._connected()
        except (OSError, smtplib.SMTPException) as problem:
            raise _failed("the mail server cannot be reached", problem) from None
        try:
            yield session
        except smtplib.SMTPException as problem:
            raise _failed("the mail server broke off", problem) from None
        except OSError as problem:
            raise _failed("the connection to the mail server broke", problem) from None
        finally:
            with suppress(OSError, smtplib.SMTPException):
                session.close()

    def _connected(self) -> smtplib.SMTP:
        context = ssl.create_default_context()
        if self.encryption is Encryption.IMPLICIT:
            session: smtplib.SMTP = smtplib.SMTP_SSL(
                self.host, self.port, timeout=TIMEOUT_SECONDS, context=context
            )
        else:
            session = smtplib.SMTP(self.host, self.port, timeout=TIMEOUT_SECONDS)
        try:
            session.ehlo_or_helo_if_needed()
            if self.encryption is Encryption.STARTTLS:
                session.starttls(context=context)
                session.ehlo()
            if self.user is not None:
                session.login(self.user, self.password or "")
        except BaseException:
            session.close()
            raise
        return session

    def _envelope(self, session: smtplib.SMTP) -> None:
        _expect(session.mail(address_in(self.sender)), 250)
        for recipient in self.recipients:
            _expect(session.rcpt(address_in(recipient)), 250, 251)


def smtp_server_of(section: MailSection) -> SmtpServer:
    """The section, checked. Raises `ConfigurationError`, without the addresses in it."""
    if not section.host or not section.sender or not section.to:
        missing = [
            key
            for key, value in (("host", section.host), ("from", section.sender), ("to", section.to))
            if not value
        ]
        raise ConfigurationError(
            f"the section books.mail has no {' and no '.join(missing)}",
            hint="Set TSUZUKI_BOOKS_MAIL_HOST, TSUZUKI_BOOKS_MAIL_FROM and TSUZUKI_BOOKS_MAIL_TO.",
            code="mail_settings",
        )
    for key, addresses in (("from", [section.sender]), ("to", section.to)):
        if not all(map(_is_address, addresses)):
            raise ConfigurationError(
                f"an address under books.mail.{key} is not one we can use",
                hint="Write name@host in ASCII letters, or Name <name@host>.",
                code="mail_address",
            )
    is_open = section.encryption is Encryption.NONE and section.host not in LOCAL_HOSTS
    if section.password is not None and is_open:
        raise ConfigurationError(
            "a password would travel unencrypted to the mail server",
            hint="Use encryption: starttls or implicit; none is for this machine only.",
            code="mail_unencrypted",
        )
    return SmtpServer(
        host=section.host,
        port=section.port,
        encryption=section.encryption,
        user=section.user,
        password=section.password.get_secret_value() if section.password else None,
        sender=section.sender,
        recipients=tuple(section.to),
    )


def address_in(written: str) -> str:
    """The address of `Name <address>`."""
    return parseaddr(written)[1]


def _is_address(written: str) -> bool:
    is_one_line = not re.search(r"[\x00-\x1f\x7f]", written)
    return is_one_line and _ADDRESS.fullmatch(address_in(written)) is not None


def _expect(answer: tuple[int, bytes], *good: int) -> None:
    """Go on if the server agrees. It may repeat an address in what it says, so only the number is
    told."""
    code = answer[0]
    if code in good:
        return
    if 500 <= code <= 599:
        raise MailRefused(
            f"the mail server refused with {code}",
            hint="Check the addresses and the account under books.mail.",
        )
    raise MailFailed(f"the mail server put us off with {code}")


def _failed(what: str, problem: Exception) -> MailFailed:
    if isinstance(problem, smtplib.SMTPAuthenticationError):
        return MailRefused(
            f"the mail server did not accept user and password ({problem.smtp_code})",
            hint="Check TSUZUKI_BOOKS_MAIL_USER and TSUZUKI_BOOKS_MAIL_PASSWORD.",
        )
    return MailFailed(f"{what} ({type(problem).__name__})")
