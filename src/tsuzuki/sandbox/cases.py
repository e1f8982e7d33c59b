"""Cases on demand: which of the next requests a service answers in another way, by the case's name.

    cases = Cases(GeminiCase)
    cases.add("daily_quota", times=2)                    # the next two requests
    cases.add("safety", containing="武器", times=None)    # each request with this word, until cleared

A fault (`faults`) breaks the HTTP of any service; a case is something the service itself does. Of several
waiting cases the one added first takes a request. Over HTTP: see `case_routes`.
"""

import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from .control import PREFIX
from .exchange import Response, Route, StandInRequest, json_response

Case = TypeVar("Case", bound=StrEnum)


@dataclass(frozen=True, kw_only=True)
class PlannedCase(Generic[Case]):
    """One case that waits for requests."""

    case: Case
    times: int | None = 1
    """None: until the cases are cleared."""

    skip: int = 0
    containing: str = ""
    """Only requests whose text has this in it."""

    seconds: float | None = None
    """For a case that speaks of time: how long. None takes the default of the case."""

    def __post_init__(self) -> None:
        if self.skip < 0 or (self.times is not None and self.times < 1) or (self.seconds or 0) < 0:
            raise ValueError("skip and seconds are not negative, times is at least 1")
        if not isinstance(self.containing, str):
            raise TypeError("containing is a text")


class Cases(Generic[Case]):
    """The cases that wait for requests to one service."""

    def __init__(self, known: type[Case]) -> None:
        self.known = known
        self._lock = threading.Lock()
        self._waiting: list[PlannedCase[Case]] = []
        self._seen: list[int] = []

    def add(
        self,
        case: Case | str,
        *,
        times: int | None = 1,
        skip: int = 0,
        containing: str = "",
        seconds: float | None = None,
    ) -> PlannedCase[Case]:
        planned = PlannedCase(
            case=self.known(case), times=times, skip=skip, containing=containing, seconds=seconds
        )
        with self._lock:
            self._waiting.append(planned)
            self._seen.append(0)
        return planned

    def clear(self) -> None:
        with self._lock:
            self._waiting.clear()
            self._seen.clear()

    @property
    def waiting(self) -> list[PlannedCase[Case]]:
        """Those that still wait for requests."""
        with self._lock:
            pairs = zip(self._waiting, self._seen, strict=True)
            return [planned for planned, seen in pairs if not _spent(planned, seen)]

    def take(self, text: str) -> PlannedCase[Case] | None:
        """The case of the request with this text, if there is one."""
        with self._lock:
            for number, planned in enumerate(self._waiting):
                if planned.containing not in text or _spent(planned, self._seen[number]):
                    continue
                self._seen[number] += 1
                if self._seen[number] > planned.skip:
                    return planned
        return None


def _spent(planned: PlannedCase[Any], seen: int) -> bool:
    return planned.times is not None and seen >= planned.skip + planned.times


def case_routes(cases: Cases[Any], path: str = "/cases") -> list[Route]:
    """GET shows the known and the waiting cases, POST adds one, DELETE clears them all."""

    def show(_request: StandInRequest) -> Response:
        waiting = [asdict(planned) for planned in cases.waiting]
        return json_response({"known": [case.value for case in cases.known], "waiting": waiting})

    def add(request: StandInRequest) -> Response:
        try:
            planned = _planned(cases, request.json())
        except (ValueError, TypeError, KeyError) as problem:
            known = ", ".join(case.value for case in cases.known)
            message = f"not a case: {problem}. Known cases: {known}"
            return json_response({"message": message}, status=400)
        return json_response(asdict(planned), status=201)

    def clear(_request: StandInRequest) -> Response:
        cases.clear()
        return Response(status=204)

    return [
        Route("GET", f"{PREFIX}{path}", show),
        Route("POST", f"{PREFIX}{path}", add),
        Route("DELETE", f"{PREFIX}{path}", clear),
    ]


def _planned(cases: Cases[Any], fields: Any) -> PlannedCase[Any]:
    if not isinstance(fields, Mapping):
        raise TypeError("an object is expected")
    options = {name: value for name, value in fields.items() if name != "case"}
    return cases.add(fields["case"], **options)
