"""Arguments as a database takes them: what it could not even compare is refused before it is asked."""

from tsuzuki.mcp.arguments import call_words
from tsuzuki.mcp.tool import ToolCall
from tsuzuki.model.errors import NotFound, UsageError

RUN_ID_MAX = 2**63 - 1


def run_id_of(call: ToolCall) -> int:
    """The run that a call is about. A number that no run can have is one that no run has."""
    run_id: int = call.arguments["run_id"]
    if run_id > RUN_ID_MAX:
        raise NotFound(
            f"there is no run {run_id}",
            hint=f"Next: {call_words('run_list', {})}",
            code="run_unknown",
        )
    return run_id


def job_of(call: ToolCall) -> str | None:
    """The job that a call names, if it names one."""
    name: str | None = call.get("job")
    if name is not None and not name.isprintable():
        raise UsageError(
            f"invalid job name {name!r}",
            hint=f"Next: {call_words('job_list', {})}",
            code="not_text",
        )
    return name
