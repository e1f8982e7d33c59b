"""The deadline that a worker renews for all its commands: a moment in memory that it shares with its supervisors.

By the same clock as `SystemClock.monotonic`, which all processes of the machine read alike and which includes the time
that the machine was suspended. A worker that is paused renews nothing, and its supervisors end its commands at that
moment, or right after the machine resumes.
"""

import math
import mmap
import os
import struct
import time
from contextlib import suppress

_FORMAT = "d"
_BYTES = struct.calcsize(_FORMAT)
_ELAPSED = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SharedDeadline:
    """`descriptor` is a file in memory; without one, a new one is made. Until the first `renew` there is no
    deadline."""

    def __init__(self, descriptor: int | None = None) -> None:
        if descriptor is None:
            descriptor = os.memfd_create("tsuzuki-deadline")
            os.ftruncate(descriptor, _BYTES)
        self.descriptor = descriptor
        self._memory = mmap.mmap(descriptor, _BYTES)

    def renew(self, at: float) -> None:
        """Move it to `at`, by the monotonic clock. Does nothing once it is closed."""
        with suppress(ValueError):
            self._memory[:] = struct.pack(_FORMAT, at)

    def seconds_left(self) -> float:
        """Until it passes; infinite if there is none."""
        (at,) = struct.unpack(_FORMAT, self._memory[:])
        return at - time.clock_gettime(_ELAPSED) if at else math.inf

    def close(self) -> None:
        """Supervisors keep what they share of it."""
        if not self._memory.closed:
            self._memory.close()
            os.close(self.descriptor)
