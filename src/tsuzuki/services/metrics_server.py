"""The HTTP server for Prometheus: on this machine only, unless another address is named."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tsuzuki.model.errors import Conflict

if TYPE_CHECKING:
    from tsuzuki.engine.metrics import Metrics


@contextmanager
def metrics_served(metrics: "Metrics", address: tuple[str, int] | None) -> Iterator[None]:
    """Serve metrics on this host and port while the block runs, if they are given."""
    if address is None:
        yield
        return
    host, port = address
    from prometheus_client import start_http_server  # noqa: PLC0415 -- slow to load, rarely needed

    try:
        server, thread = start_http_server(port, addr=host, registry=metrics.registry)
    except OSError as problem:
        raise Conflict(
            f"cannot serve metrics on {host}:{port}: {problem.strerror}",
            hint="Choose another --metrics-port or --metrics-host, or stop the program that uses it.",
            code="metrics_port",
        ) from problem
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5.0)
