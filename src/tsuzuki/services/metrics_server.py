"""The HTTP server for Prometheus, on this machine only."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tsuzuki.model.errors import Conflict

if TYPE_CHECKING:
    from tsuzuki.engine.metrics import Metrics


@contextmanager
def metrics_served(metrics: "Metrics", port: int | None) -> Iterator[None]:
    """Serve metrics on 127.0.0.1 while the block runs, if a port is given."""
    if port is None:
        yield
        return
    from prometheus_client import start_http_server  # noqa: PLC0415 -- slow to load, rarely needed

    try:
        server, thread = start_http_server(port, addr="127.0.0.1", registry=metrics.registry)
    except OSError as problem:
        raise Conflict(
            f"metrics cannot be served on 127.0.0.1:{port}: {problem.strerror}",
            hint="Choose another --metrics-port, or stop what listens there.",
            code="metrics_port",
        ) from problem
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5.0)
