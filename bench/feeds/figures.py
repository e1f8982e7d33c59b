"""What a measured process prints: one line of JSON, with its peak memory and its processor time."""

import json
import resource
from typing import Any


def processor_seconds() -> float:
    """Of this process and of those it started and waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def say(**figures: Any) -> None:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**figures, "memory_mb": round(memory)}))
