"""What a collector adds to the web page: screens and menu entries, parts of shared screens, and its files."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tsuzuki.model.import_string import load
from tsuzuki.web.pages.navigation import MenuEntry
from tsuzuki.wiring.collector import Collector
from tsuzuki.wiring.collectors import usable_parts

if TYPE_CHECKING:
    from tsuzuki.model.run import Run
    from tsuzuki.web.pages.context import PageContext
    from tsuzuki.web.pages.overview_card import OverviewCards
    from tsuzuki.web.pages.run_effects import RunEffects

HOST_FOLDER = Path(__file__).parents[1]

EffectsOf: TypeAlias = "Callable[[PageContext, Run], RunEffects]"
PlacesOf: TypeAlias = "Callable[[PageContext, int], Iterator[tuple[str, str]]]"


@dataclass(frozen=True, kw_only=True)
class Pages:
    """The pages of a collector. Functions are import strings, loaded with the first page that needs them."""

    folder: Path
    """Its `templates/`, `locale/` and `static/css/` are used where they exist, under names that no other folder has."""

    screens: tuple[str, ...]
    """Modules with a `screen` each."""

    icons: Mapping[str, str] = field(default_factory=dict)
    """By name, what is drawn in an SVG of 16 by 16 units, for menu entries and templates."""

    menu: tuple[MenuEntry, ...] = ()
    """Entries of the group "Collections"."""

    overview: "OverviewCards | None" = None
    """Its cards on the overview."""

    audit_words: Mapping[str, str] = field(default_factory=dict)
    """By the code of an action or of an object type of its audit log, what people read: `message("Email settled")`."""

    run_effects: str | None = None
    """What a run left behind, for the page of the run: `(PageContext, Run) -> RunEffects`."""

    numbered: str | None = None
    """Pages of objects with this number, for the search field: `(PageContext, int) -> (kind, path)` pairs."""

    def load_run_effects(self) -> "EffectsOf | None":
        return load(self.run_effects) if self.run_effects else None

    def load_numbered(self) -> "PlacesOf | None":
        return load(self.numbered) if self.numbered else None


@cache
def collector_pages() -> dict[str, Pages]:
    """The pages of each usable collector whose screens can be loaded."""
    return usable_parts(_pages)


def _pages(collector: Collector) -> Pages | None:
    if collector.pages is None:
        return None
    pages: Pages = collector.load(collector.pages)
    for module in pages.screens:
        collector.load(f"{module}:screen")
    return pages


def extensions() -> tuple[Pages, ...]:
    """The pages of all usable collectors, in the order of their names."""
    return tuple(collector_pages().values())


def folders(name: str) -> list[Path]:
    """The folders by this name (`templates`, `locale`, `static/css`): the host's first, then those of collectors."""
    found = (HOST_FOLDER, *(one.folder for one in extensions()))
    return [folder / name for folder in found if (folder / name).is_dir()]
