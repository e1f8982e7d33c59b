"""A Prometheus histogram that observes a whole batch of values at once.

The client library's own takes a lock and several calls for each value, which cost more than all other
bookkeeping for a run together.
"""

import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector


class BatchHistogram(Collector):
    def __init__(
        self, name: str, help_text: str, *, buckets: Sequence[float], registry: CollectorRegistry
    ) -> None:
        self._name = name
        self._help_text = help_text
        self._buckets = buckets
        self._counts = [0] * (len(buckets) + 1)  # cumulative: values up to each limit
        self._sum = 0.0
        self._lock = threading.Lock()
        registry.register(self)

    def observe(self, seconds: Iterable[float]) -> None:
        values = sorted(seconds)
        cumulative = [bisect_right(values, limit) for limit in self._buckets]
        with self._lock:
            self._counts = [
                count + more
                for count, more in zip(self._counts, [*cumulative, len(values)], strict=True)
            ]
            self._sum += sum(values)

    def collect(self) -> Iterator[HistogramMetricFamily]:
        with self._lock:
            counts, total = self._counts, self._sum
        limits = [*(str(float(limit)) for limit in self._buckets), "+Inf"]
        family = HistogramMetricFamily(self._name, self._help_text)
        family.add_metric([], buckets=list(zip(limits, counts, strict=True)), sum_value=total)
        yield family
