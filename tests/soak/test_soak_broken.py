"""A soak in which one guard is broken must find fault, or it proves nothing."""

from pathlib import Path

import pytest

from soak.broken_guards import BrokenGuard
from soak.command import soak

SEED = 14
SECONDS = 4.0


@pytest.mark.full
@pytest.mark.timeout(400)
def test_a_soak_finds_posts_that_are_sent_twice(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"posts: /articles/\S+ [2-9] times"):
        soak(SEED, SECONDS, kept=tmp_path, broken=BrokenGuard.POSTS)
