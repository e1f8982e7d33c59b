"""One call, from its name to an answer."""

from pathlib import Path

import pytest

from tsuzuki.mcp.calls import answer_call
from tsuzuki.mcp.presets import presets
from tsuzuki.mcp.runs import run_lists
from tsuzuki.mcp.tool import ServerState, ToolProgress
from tsuzuki.model.errors import UsageError
from tsuzuki.model.secrets import SecretMask

SECRET = "correct-horse-battery"


def test_a_refusal_is_masked_before_it_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_call: object) -> None:
        raise UsageError(f"{'x' * 900}{SECRET}", hint="Ask otherwise.")

    monkeypatch.setattr(run_lists, "run_list", fail)
    state = ServerState(environ={}, cwd=Path("/"), mask=SecretMask(lambda: [SECRET]))
    tools = presets()["runs"].tools
    for budget in range(200, 300):
        given = {"budget": budget}
        answer = answer_call(tools, "run_list", given, state=state, progress=ToolProgress())
        assert answer.is_error
        assert SECRET[:6] not in answer.content, (budget, answer.content)
