"""The answer to a call, in both channels: text for clients that show text, structure for those that show structure.

Either channel alone is complete, and each of them is within the budget.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tsuzuki.mcp.tokens import QUARTERS, clipped, compact_json, printable, quarters
from tsuzuki.model.secrets import SecretMask


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


def refusal(message: str, hint: str | None, *, budget: int) -> ToolAnswer:
    """An error that the caller can read and act on. If it is long, its last line is kept: what to do next."""
    *lines, last = printable(f"{message}\n{hint}" if hint else message).split("\n")
    last = clipped(last, QUARTERS * budget // 2)
    above = clipped("\n".join(lines), QUARTERS * budget - quarters(last) - 1)
    return ToolAnswer(header="", text=f"{above}\n{last}" if above else last, is_error=True)


def masked(answer: ToolAnswer, mask: SecretMask | None) -> ToolAnswer:
    """The same without the secrets in it, in both channels; as it is without a mask."""
    if mask is None:
        return answer
    return replace(
        answer,
        header=mask.text(answer.header),
        text=mask.text(answer.text),
        structured=mask.value(answer.structured),
    )
