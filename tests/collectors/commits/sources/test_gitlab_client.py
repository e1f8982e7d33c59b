"""A GitLab behind TLS: what may pass is told apart from what has to be put right."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from support.certificates import make_certificate
from tsuzuki.collectors.commits.sandbox.gitlab import TOKEN
from tsuzuki.collectors.commits.sources.gitlab import GitLabHost
from tsuzuki.model.clock import SystemClock
from tsuzuki.outward.errors import SourceRefused, SourceUnavailable


@contextmanager
def host_behind(answer: Callable[[socket.socket], object]) -> Iterator[GitLabHost]:
    """A host whose only connection is treated like this."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            link, _ = listener.accept()
            with link, suppress(OSError):
                answer(link)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        host = GitLabHost(url=url, token=TOKEN, clock=SystemClock())
        yield host
        thread.join()
        host.close()


def end_the_handshake(link: socket.socket) -> None:
    link.recv(65536)  # what is not read would reset the connection
    link.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize(
    "answer",
    [end_the_handshake, lambda link: link.sendall(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")],
    ids=["closes", "does not speak TLS"],
)
def test_a_handshake_that_breaks_off_may_pass(answer: Callable[[socket.socket], object]) -> None:
    with (
        host_behind(answer) as host,
        pytest.raises(SourceUnavailable, match="closed the connection"),
    ):
        host.source(1).head("main")


def test_a_certificate_that_cannot_be_verified_is_refused(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(make_certificate(tmp_path).path)
    with (
        host_behind(lambda link: context.wrap_socket(link, server_side=True)) as host,
        pytest.raises(SourceRefused, match="has an invalid certificate"),
    ):
        host.source(1).head("main")
