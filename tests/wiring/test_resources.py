"""What a process has open, and what its configuration sets for it."""

from pathlib import Path

import pytest

from support.moving_clock import MovingClock
from tsuzuki.config import load_configuration
from tsuzuki.outward.user_agent import set_contact, user_agent
from tsuzuki.wiring.resources import open_resources


@pytest.mark.parametrize("contact", ["me@example.org", None])
def test_requests_name_the_contact_of_the_configuration(
    tmp_path: Path, contact: str | None
) -> None:
    said = f"contact: {contact}\n" if contact else ""
    (tmp_path / "tsuzuki.yaml").write_text(f"{said}jobs: {{}}\n")
    configuration = load_configuration(environ={}, cwd=tmp_path)
    try:
        with open_resources(configuration, clock=MovingClock(), environ={}):
            assert ("me@example.org" in user_agent()) is bool(contact)
    finally:
        set_contact(None)
