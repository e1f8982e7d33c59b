"""Load the parts that collectors add to a command."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tsuzuki.model.import_string import load

if TYPE_CHECKING:
    from tsuzuki.wiring.collector import Collector


def collector_parts(target: "Callable[[Collector], str | None]") -> dict[str, Any]:
    """By collector, the object behind the import string that `target` picks from its record. Raises
    `ConfigurationError` if that of another distribution cannot be loaded."""
    from tsuzuki.wiring.collectors import collector_records, guarded

    records = collector_records()
    return {
        name: guarded(name, records.distributions.get(name), partial(load, string))
        for name, collector in records.usable.items()
        if (string := target(collector)) is not None
    }
