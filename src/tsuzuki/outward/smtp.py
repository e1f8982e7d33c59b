"""SMTP, step by step: before the server's go-ahead nothing has been sent, after it everything is. In
between, the caller records that; an answer that was never heard, or that is none, is reported as unknown.

A reply is understood by its first digit, as RFC 5321 asks of a client: 2 is yes, 4 not now, 5 never.

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

from tsuzuki.model.errors import ConfigurationError, ServiceUnreachable
from tsuzuki.outward.smtp_settings import Encryption, SmtpSettings

TIMEOUT_SECONDS = 30.0
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
_YES, _GO_AHEAD, _NO = 2, 3, (4, 5)
"""First digits of replies."""

_ADDRESS = re.compile(r"[!-?A-~]{1,64}@[A-Za-z0-9.\[\]:-]{1,255}")


class MailFailed(ServiceUnreachable):
    """The server did not take the mail, and surely has not sent it."""

    code = "mail"


class MailRefused(MailFailed):
    """The server will not take this mail, however often it is tried."""

    code = "mail_refused"
    permanent = True


class MailDelivery(Enum):
    """What is known once the message has left."""

    ACCEPTED = auto()
    UNKNOWN = auto()
    """The connection ended before the answer, or what came is no answer to a message."""


@dataclass(frozen=True, kw_only=True)
class SmtpServer:
    """A server and the addresses to use with it, checked. `section` is where they are configured."""

    section: str
    host: str
    port: int
    encryption: Encryption
    user: str | None = field(repr=False)
    password: str | None = field(repr=False)
    sender: str = field(repr=False)
    recipients: tuple[str, ...] = field(repr=False)

    @property
    def domain(self) -> str:
        """The right half of our message ids."""
        return address_in(self.sender).rpartition("@")[2]

    def send(self, message: EmailMessage, before_sending: Callable[[], None]) -> MailDelivery:
        """Have a message taken by the server. Raises `MailFailed` if it surely was not;
        an error of `before_sending` leaves it unsent as well."""
        body = re.sub(rb"(?m)^\.", b"..", message.as_bytes())
        with self._session() as session:
            self._envelope(session)
            self._expect(session.docmd("DATA"), _GO_AHEAD)
            before_sending()
            try:
                session.send(body + (b"" if body.endswith(b"\r\n") else b"\r\n") + b".\r\n")
                answer = session.getreply()
            except (OSError, smtplib.SMTPException):
                return MailDelivery.UNKNOWN
            if answer[0] // 100 not in (_YES, *_NO):
                return MailDelivery.UNKNOWN
            self._expect(answer, _YES)
            with suppress(OSError, smtplib.SMTPException):
                session.quit()
            return MailDelivery.ACCEPTED

    def sign_in(self) -> None:
        """Connect, encrypt and sign in; send nothing. Raises `MailFailed`."""
        with self._session() as session, suppress(OSError, smtplib.SMTPException):
            session.quit()

    @contextmanager
    def _session(self) -> Iterator[smtplib.SMTP]:
        try:
            session = self._connected()
        except (OSError, smtplib.SMTPException) as problem:
            raise self._failed("the mail server is unreachable", problem) from None
        try:
            yield session
        except smtplib.SMTPException as problem:
            raise self._failed("the mail server closed the connection", problem) from None
        except OSError as problem:
            raise self._failed("the connection to the mail server was lost", problem) from None
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
        self._expect(session.mail(address_in(self.sender)), _YES)
        for recipient in self.recipients:
            self._expect(session.rcpt(address_in(recipient)), _YES)

    def _expect(self, answer: tuple[int, bytes], first_digit: int) -> None:
        """Go on if the server agrees. It may repeat an address in what it says, so only the number is
        told."""
        code = answer[0]
        if code // 100 == first_digit:
            return
        if 500 <= code <= 599:
            raise MailRefused(
                f"the mail server refused the email with {code}",
                hint=f"Check the addresses and the account under {self.section}.",
            )
        raise MailFailed(f"the mail server deferred the email with {code}")

    def _failed(self, what: str, problem: Exception) -> MailFailed:
        if isinstance(problem, smtplib.SMTPAuthenticationError):
            return MailRefused(
                f"the mail server did not accept the user and password ({problem.smtp_code})",
                hint=f"Check {_variable(self.section, 'user')} and {_variable(self.section, 'password')}.",
            )
        return MailFailed(f"{what} ({type(problem).__name__})")


def smtp_server_of(settings: SmtpSettings, *, section: str) -> SmtpServer:
    """Check the settings, which stand under `section`. Raises `ConfigurationError`, which holds no address."""
    if not settings.host or not settings.sender or not settings.to:
        needed = {"host": settings.host, "from": settings.sender, "to": settings.to}
        missing = [key for key, value in needed.items() if not value]
        raise ConfigurationError(
            f"missing in the section {section}: {' and '.join(missing)}",
            hint="Set {}, {} and {}.".format(*(_variable(section, key) for key in needed)),
            code="mail_settings",
        )
    for key, addresses in (("from", [settings.sender]), ("to", settings.to)):
        if not all(map(_is_address, addresses)):
            raise ConfigurationError(
                f"an address under {section}.{key} cannot be used",
                hint="Write name@host in ASCII letters, or Name <name@host>.",
                code="mail_address",
            )
    is_open = settings.encryption is Encryption.NONE and settings.host not in LOCAL_HOSTS
    if settings.password is not None and is_open:
        raise ConfigurationError(
            "the password would be sent unencrypted to the mail server",
            hint="Use encryption: starttls or implicit; none is allowed only for servers on this "
            "machine.",
            code="mail_unencrypted",
        )
    return SmtpServer(
        section=section,
        host=settings.host,
        port=settings.port,
        encryption=settings.encryption,
        user=settings.user,
        password=settings.password.get_secret_value() if settings.password else None,
        sender=settings.sender,
        recipients=tuple(settings.to),
    )


def address_in(written: str) -> str:
    """The address of `Name <address>`."""
    return parseaddr(written)[1]


def _is_address(written: str) -> bool:
    is_one_line = not re.search(r"[\x00-\x1f\x7f]", written)
    return is_one_line and _ADDRESS.fullmatch(address_in(written)) is not None


def _variable(section: str, key: str) -> str:
    """The environment variable of a setting."""
    return f"TSUZUKI_{section}.{key}".replace(".", "_").upper()
