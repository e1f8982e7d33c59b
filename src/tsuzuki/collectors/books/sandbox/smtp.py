"""A stand-in for a mail server: takes what comes, keeps it, and fails where it is told to.

with MailServer() as mail:
    mail.fail_at(Step.ANSWER)       # takes the message and ends without a word
    ...
    assert mail.messages[0]["Subject"] == "hello"
"""

import contextlib
import socket
import threading
from collections.abc import Callable
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from enum import StrEnum
from typing import Any, Self

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from tsuzuki.sandbox.stand_in_kind import StandInContext


class SmtpStep(StrEnum):
    """Where in its conversation the server fails, once."""

    RECIPIENT = "recipient"
    """The recipient is refused for good (550)."""

    DATA_LATER = "data_later"
    """The whole message was sent, and the server asks to try again later (451)."""

    DATA_NEVER = "data_never"
    """The whole message was sent, and the server will not have it (554)."""

    ANSWER = "answer"
    """The message is taken, and the connection ends before the answer."""

    GARBAGE = "garbage"
    """The message is taken, and what is answered is no SMTP reply."""

    HANG = "hang"
    """The message is taken, and no answer comes until `release`."""


class MailServer:
    """On a free port of 127.0.0.1 between `start` and `stop`, or as a context."""

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.host = host
        self.port = port or _free_port(host)
        self.messages: list[EmailMessage] = []
        self.taken = threading.Event()
        """Set whenever a message was taken."""

        self.when_taken: Callable[[EmailMessage], object] = lambda _message: None
        """Called with each message before it is answered, while the client waits."""

        self.when_recipient_named: Callable[[], object] = lambda: None
        """Called at each recipient, before anything is sent."""

        self.taken_reply = "250 taken"
        """What a message that was taken is answered with. Any reply with a first digit of 2 means that."""

        self._failing: SmtpStep | None = None
        self._released = threading.Event()
        self._controller = Controller(self, hostname=host, port=self.port)

    def fail_at(self, step: SmtpStep) -> None:
        """Fail at the next message that comes so far."""
        self._failing = step

    def release(self) -> None:
        """Let go what hangs."""
        self._released.set()

    def forget_hooks(self) -> None:
        self.when_taken = lambda _message: None
        self.when_recipient_named = lambda: None

    def start(self) -> None:
        try:
            self._controller.start()
        except OSError:
            self._controller.loop.close()  # which aiosmtpd leaves open when a port is taken
            raise

    def stop(self) -> None:
        self.release()
        self._controller.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    # --- what aiosmtpd calls --------------------------------------------------------------------

    async def handle_RCPT(  # noqa: N802 -- aiosmtpd's name
        self, server: SMTP, _session: Session, envelope: Envelope, address: str, _options: Any
    ) -> str:
        await server.loop.run_in_executor(None, self.when_recipient_named)
        if self._fails(SmtpStep.RECIPIENT):
            return "550 no such user here"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802 -- aiosmtpd's name
        self, server: SMTP, _session: Session, envelope: Envelope
    ) -> str:
        if self._fails(SmtpStep.DATA_LATER):
            return "451 try again later"
        if self._fails(SmtpStep.DATA_NEVER):
            return "554 not this one"
        message = message_from_bytes(envelope.original_content or b"", policy=default)
        self.messages.append(message)
        self.taken.set()
        await server.loop.run_in_executor(None, self.when_taken, message)
        if self._fails(SmtpStep.ANSWER) and server.transport is not None:
            server.transport.close()
        if self._fails(SmtpStep.GARBAGE):
            return "<html>Bad Gateway</html>"
        if self._fails(SmtpStep.HANG):
            await server.loop.run_in_executor(None, self._released.wait)
        return self.taken_reply

    def _fails(self, step: SmtpStep) -> bool:
        is_due = self._failing is step
        if is_due:
            self._failing = None
        return is_due


def start(context: StandInContext) -> dict[str, str]:
    """Start it in `tsuzuki sandbox`, and report every message."""
    server = context.run(lambda port: MailServer(port=port))
    server.when_taken = lambda message: context.say(
        f"Mail for {message['To']}: {message['Subject']}"
    )
    return {
        "TSUZUKI_BOOKS_MAIL_HOST": server.host,
        "TSUZUKI_BOOKS_MAIL_PORT": str(server.port),
        "TSUZUKI_BOOKS_MAIL_ENCRYPTION": "none",
        "TSUZUKI_BOOKS_MAIL_FROM": "tsuzuki@localhost",
        "TSUZUKI_BOOKS_MAIL_TO": "you@localhost",
    }


def _free_port(host: str) -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
