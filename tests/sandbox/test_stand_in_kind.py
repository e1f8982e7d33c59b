"""What a collector's stand-ins are started with, and what becomes of their ports."""

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
import requests

from tsuzuki.sandbox.exchange import Response, StandInRequest
from tsuzuki.sandbox.ports import PortTaken, start_on
from tsuzuki.sandbox.server import StandIn
from tsuzuki.sandbox.stand_in_kind import StandInContext


def answer(_request: StandInRequest) -> Response:
    return Response(body=b"sunny")


def stand_in(port: int) -> StandIn:
    return StandIn(answer, port=port)


def context(running: ExitStack, *, port: int = 0) -> StandInContext:
    return StandInContext(port=port, options={}, folder=Path(), say=print, running=running)


def test_an_application_is_served_until_the_command_ends() -> None:
    with ExitStack() as running:
        server = context(running).serve(answer)
        assert requests.get(server.url, timeout=30).text == "sunny"
    with pytest.raises(requests.ConnectionError):
        requests.get(server.url, timeout=30)


def test_a_port_that_is_taken_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, ExitStack() as running:
        port = taken.getsockname()[1]
        with pytest.raises(PortTaken) as raised:
            context(running, port=port).serve(answer)
    assert raised.value.port == port


def test_the_first_free_port_is_used() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = start_on([port, 0], stand_in)
        try:
            assert server.port not in (0, port)
        finally:
            server.stop()
