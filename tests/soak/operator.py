"""What an operator does during a soak.

A feed that failed twice is not asked for five minutes and more, unless a person wants it; what became of a mail may
only be known by looking; and a quota is raised by changing the configuration.
"""

import time
from contextlib import suppress
from dataclasses import dataclass, field

from soak.event_log import EventLog
from soak.outside import Outside
from soak.quota import Quota
from soak.waits import waits
from tsuzuki.model.errors import Unreachable
from tsuzuki.outward.outbox import OutboxState
from tsuzuki.services.runs import Request
from tsuzuki.store.sql.database import Database
from tsuzuki.wiring.application import Application

LOOK_SECONDS = 10.0
FETCH_SECONDS = 30.0


@dataclass(kw_only=True)
class Operator:
    """Step it as long as the soak runs."""

    database: Database
    application: Application
    outside: Outside
    quota: Quota
    events: EventLog
    looked_at: float = field(default_factory=time.monotonic)

    def step(self) -> None:
        """Nothing is done while the database is out of reach."""
        with suppress(Unreachable):
            self.events.add(*self.quota.step())
            if time.monotonic() - self.looked_at >= LOOK_SECONDS:
                self.looked_at = time.monotonic()
                self.look()

    def look(self) -> None:
        """Tell what the system waits for, and help where a person has to."""
        self.events.add(f"waits for {'; '.join(waits(self.database)) or 'nothing'}")
        window = int(time.monotonic() / FETCH_SECONDS)
        key = f"fetch in window {window}"
        fetch = Request(job="bot", arguments={"process": False}, idempotency_key=key)
        self.application.runs.submit(fetch)
        self._decide_mails()

    def _decide_mails(self) -> None:
        arrived = {str(mail["Message-ID"]) for mail in self.outside.mail.messages}
        service = self.application.service("books")
        for view in service.mails(limit=1_000):
            if view.mail.state is OutboxState.UNSETTLED:
                has_arrived = view.mail.message_id in arrived
                (service.mark_sent if has_arrived else service.resend)(view.mail.id)
