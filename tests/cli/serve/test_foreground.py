"""What a process in the foreground says when it has started."""

from types import SimpleNamespace
from typing import Any

import pytest

from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.serve.foreground import Manner, _Announcements
from tsuzuki.model.errors import Unreachable

UNLED = "There is no leader yet, so nothing is assigned. Start one with: tsuzuki up"


def test_only_a_worker_that_no_process_leads_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    def out_of_reach() -> bool:
        raise Unreachable("the database does not answer")

    def told(*, leads: bool, has_live_leader: Any) -> bool:
        application: Any = SimpleNamespace(
            configuration=SimpleNamespace(database_url="sqlite:///x.db"),
            liveness=SimpleNamespace(has_live_leader=has_live_leader),
        )
        announcements = _Announcements(Invocation(environ={}), log_format="text", manner=Manner())
        announcements.started(application, None, leads=leads)
        return UNLED in capsys.readouterr().err

    assert told(leads=False, has_live_leader=lambda: False)
    assert not told(leads=False, has_live_leader=lambda: True)
    assert not told(leads=True, has_live_leader=out_of_reach)
    assert not told(leads=False, has_live_leader=out_of_reach)
