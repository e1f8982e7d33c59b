"""Cards of collectors on the overview: a number to look at, with its name and the page it leads to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from tsuzuki.model.access import AnyRight
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.model.import_string import load
from tsuzuki.web.answers import Model
from tsuzuki.wiring.collectors import collector_records, guarded

if TYPE_CHECKING:
    from tsuzuki.web.pages.context import PageContext
    from tsuzuki.web.pages.extension import Pages


class Card(Model):
    """`name` and `number` are shown as they are, in the viewer's language. `bad` is for what a person must act on."""

    name: str
    number: str
    path: str
    tone: Literal["plain", "bad"] = "plain"


CardsOf: TypeAlias = "Callable[[PageContext], Sequence[Card]]"


@dataclass(frozen=True, kw_only=True)
class OverviewCards:
    """The cards of a collector, for viewers who have the right. They are made with each rendering of the overview: read
    little."""

    right: AnyRight
    make: str
    """Import string of a function: `(PageContext) -> Sequence[Card]`."""


def cards_of(
    context: "PageContext", pages: "dict[str, Pages]"
) -> tuple[list[Card], dict[str, TsuzukiError]]:
    """The cards that the viewer may see, and by collector why there are none."""
    cards: list[Card] = []
    problems: dict[str, TsuzukiError] = {}
    distributions = collector_records().distributions
    for name, one in pages.items():
        if name in context.application.refused_collectors or one.overview is None:
            continue
        if not context.principal.may(one.overview.right):
            continue
        try:
            make = partial(_made, one.overview.make, context)
            cards += guarded(name, distributions.get(name), make)
        except TsuzukiError as problem:
            problems[name] = problem
    return cards, problems


def _made(target: str, context: "PageContext") -> "Sequence[Card]":
    make: CardsOf = load(target)
    return make(context)
