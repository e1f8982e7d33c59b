"""A connection to PostgreSQL whose network is gone must not hang for long."""

import os
import socket

from support.databases import PostgresServer, opened
from support.proxy import Proxy
from tsuzuki.store.sql.postgresql import UNACKNOWLEDGED_SECONDS


def test_what_was_sent_and_never_arrives_ends_the_connection_soon(
    postgres: PostgresServer,
) -> None:
    with (
        Proxy(postgres.socket_file) as proxy,
        opened(proxy.url("postgres")) as database,
        database.read() as connection,
    ):
        descriptor = connection.connection.driver_connection.fileno()  # type: ignore[union-attr]
        with socket.socket(fileno=os.dup(descriptor)) as ours:
            waits = ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    assert waits == UNACKNOWLEDGED_SECONDS * 1000
