"""The cache of the settings: read again when it is old, also in a process that only works."""

import pytest

from support.engines import Engines
from support.waiting import wait_until


def test_changed_settings_reach_also_a_process_that_only_works(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader that judges by new settings a worker that lives by old ones judges too early."""
    monkeypatch.setattr("tsuzuki.engine.settings_cache.SETTINGS_MAX_AGE_SECONDS", 0.0)
    worker = engines.start(lead=False)
    engines.put(worker_ttl_seconds=17.0)
    wait_until(lambda: worker.settings().worker_ttl_seconds == 17.0, "the worker knows")
