"""The sockets of the server: an answer is sent at once, and does not wait for an acknowledgement."""

import socket
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

from support.web_client import Served


def test_answers_do_not_wait_for_acknowledgements(served: Served) -> None:
    with closing(HTTPConnection(urlsplit(served.server.url).netloc, timeout=120)) as connection:
        connection.request("GET", "/livez")
        connection.getresponse().read()
        accepted = list(served.server._server.server_state.connections)
        sockets = [protocol.transport.get_extra_info("socket") for protocol in accepted]
        assert sockets
        assert all(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for one in sockets)
