"""What an event says. The API says it as JSON; a page may have a renderer of its own for each language."""

import json
from typing import Any, Protocol

from tsuzuki.model.secrets import SecretMask
from tsuzuki.services.changes import RunChange
from tsuzuki.services.logs import LogLine
from tsuzuki.web.answers import to_utc_text
from tsuzuki.web.stream.source import NewLines, StateChange


class Renderer(Protocol):
    """Renders once for all streams whose renderers have the same key. Called in threads."""

    @property
    def key(self) -> str: ...

    def render(self, kind: str, data: Any) -> str | None:
        """The text of an event; None for no event. `data` is a sequence of `RunChange` for runs, `NewLines` for logs,
        and `StateChange` for all else."""


class JsonRenderer:
    """The rendering of the API. Secrets in lines of logs are masked."""

    key = "json"

    def __init__(self, mask: SecretMask) -> None:
        self._mask = mask

    def render(self, kind: str, data: Any) -> str | None:
        return write_json(self._value(kind, data))

    def _value(self, kind: str, data: Any) -> Any:
        match data:
            case NewLines():
                lines = [self._line(line) for line in data.lines]
                return {"run_id": data.run_id, "lines": lines, "ended": data.ended}
            case StateChange():
                return {
                    str(kind): [*data.changed],
                    "gone": [*data.gone],
                    "is_whole": data.is_whole,
                }
            case _:
                return {"changes": [_change(change) for change in data]}

    def _line(self, line: LogLine) -> dict[str, Any]:
        return {
            "seq": line.seq,
            "at": to_utc_text(line.at),
            "stream": line.stream,
            "body": self._mask.text(line.body),
        }


def _change(change: RunChange) -> dict[str, Any]:
    values = {**vars(change.transition), "job_name": change.job_name}
    values["at"] = to_utc_text(change.transition.at)
    return values


def write_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
