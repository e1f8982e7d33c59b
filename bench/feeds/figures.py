"""Output of a measured process: one line of JSON with peak memory and processor time."""

import json
import resource
from typing import Any


def processor_seconds() -> float:
    """Processor time of this process and of the children it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def say(**figures: Any) -> None:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**figures, "memory_mb": round(memory)}))
