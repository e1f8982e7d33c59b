"""The answer to a call, in both channels: text for clients that show text, structure for those that show structure.

Either channel alone is complete, and each of them is within the budget.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tsuzuki.mcp.tokens import QUARTERS, compact_json, quarters


@dataclass(frozen=True, kw_only=True)
class ToolAnswer:
    """`content` is the header line and the text; `structured` has the same text, and what the header says as keys."""

    header: str
    text: str
    structured: Mapping[str, Any] = field(default_factory=dict)
    is_error: bool = False

    @property
    def content(self) -> str:
        return f"{self.header}\n{self.text}" if self.header else self.text

    @property
    def quarters(self) -> int:
        """Of the longer channel, in quarters of a token."""
        structured = quarters(compact_json(self.structured)) if self.structured else 0
        return max(quarters(self.content), structured)

    def fits(self, budget: int) -> bool:
        return self.quarters <= QUARTERS * budget


def refusal(message: str, hint: str | None) -> ToolAnswer:
    """An error that the caller can read and act on."""
    return ToolAnswer(header="", text=f"{message}\n{hint}" if hint else message, is_error=True)
