"""A Redis for each test, and coordination through it."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from support.moving_clock import MovingClock
from support.redis_server import RedisServer
from tsuzuki.engine.coordination.protocol import Coordination, connect


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture
def coordination(server: RedisServer, clock: MovingClock) -> Iterator[Coordination]:
    with closing(connect(server.url, clock)) as coordination:
        yield coordination
