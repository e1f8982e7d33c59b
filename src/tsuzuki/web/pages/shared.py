"""One rendering for many viewers: the content of a live page is made once a second, however many follow it.

Viewers share it if they have the same address, language, zone and rights. The answer says how old it is, and the
script of a viewer that heard of something newer asks again.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from fastapi import Response

from tsuzuki.model.clock import Clock, SystemClock
from tsuzuki.web.pages.viewer import Viewer

KEPT_SECONDS = 1.0
KEPT_MAX = 500
AGE_HEADER = "Tsuzuki-Age-Ms"


@dataclass
class _Entry:
    lock: threading.Lock = field(default_factory=threading.Lock)
    made_at: float = 0.0
    response: Response | None = None


class SharedRenderings:
    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._entries: dict[tuple[object, ...], _Entry] = {}

    def answer(self, viewer: Viewer, render: Callable[[], Response]) -> Response:
        """What `render` answers, or answered for another viewer within the last second."""
        entry = self._entry(_key(viewer))
        with entry.lock:
            now = self._clock.monotonic()
            if entry.response is None or now - entry.made_at >= KEPT_SECONDS:
                entry.response = None  # nothing old is shown as new if this fails
                response = render()
                entry.response, entry.made_at = response, now  # what happened meanwhile is newer
            return _copy(entry.response, age_ms=round((now - entry.made_at) * 1000))

    def _entry(self, key: tuple[object, ...]) -> _Entry:
        with self._lock:
            if key not in self._entries and len(self._entries) >= KEPT_MAX:
                self._entries.clear()
            return self._entries.setdefault(key, _Entry())


def _key(viewer: Viewer) -> tuple[object, ...]:
    by = viewer.principal
    return (
        str(viewer.link),
        viewer.language,
        viewer.zone.key,
        viewer.preferences.browser_zone,
        viewer.accepts_gzip,
        viewer.origin,
        None if by is None else (by.role, by.scopes),
    )


def _copy(response: Response, *, age_ms: int) -> Response:
    headers = {**response.headers, AGE_HEADER: str(age_ms)}
    return Response(response.body, response.status_code, headers)
