"""The program of a worker process: parses batches of files until its input ends, which it does with its parent.

A message is its length (8 bytes) and a pickle, in both directions: parent and worker are the same program.
"""

import gc
import os
import pickle
import struct
import sys
from typing import IO, Any

from tsuzuki.collectors.codeindex.parsing.parse import parse_file

NICENESS = 5
"""Who asks how a build goes is answered before the next file is parsed."""

LENGTH = struct.Struct(">Q")


def send(stream: IO[bytes], value: object) -> None:
    body = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(LENGTH.pack(len(body)))
    stream.write(body)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """The next message; None at the end of the stream."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    body = stream.read(length)
    return pickle.loads(body) if len(body) == length else None  # noqa: S301 -- from our own parent


def main() -> None:
    """First comes the root and the limits, then batches; each is answered with what was parsed."""
    orders, answers = sys.stdin.buffer, sys.stdout.buffer
    os.nice(NICENESS)
    gc.disable()  # a batch makes many objects and no cycles that matter
    setup = receive(orders)
    if setup is None:
        return
    root, limits = setup
    while (batch := receive(orders)) is not None:
        try:
            send(answers, [parse_file(root, file, limits) for file in batch])
        except BrokenPipeError:
            return
        gc.collect(0)
