"""Who looks at a page, and how: language, zone, theme, rights, and the moment of the request."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from zoneinfo import ZoneInfo

from fastapi import Request

from tsuzuki.model.access import AnyRight, Principal
from tsuzuki.model.clock import SystemClock
from tsuzuki.web.pages.extension import extensions
from tsuzuki.web.pages.flash import Flash, flash_of
from tsuzuki.web.pages.links import PageLink, path_part
from tsuzuki.web.pages.navigation import COLLECTIONS, MENU, MenuEntry, MenuGroup
from tsuzuki.web.pages.preferences import Preferences, language_of, preferences_of

FRAGMENT_HEADER = "Tsuzuki-Fragment"
_clock = SystemClock()


@dataclass(frozen=True, kw_only=True)
class Viewer:
    """`is_fragment`: our script asks for the content of the page alone, to update it in place."""

    principal: Principal | None
    preferences: Preferences
    language: str
    now: datetime
    origin: str
    """Scheme and host, as in `http://127.0.0.1:8420`."""
    link: PageLink
    flash: Flash | None
    is_fragment: bool
    accepts_gzip: bool
    menu: tuple[MenuGroup, ...]
    rights: Mapping[str, AnyRight]
    """Those of the engine and of usable collectors, by name."""

    @cached_property
    def zone(self) -> ZoneInfo:
        """The one that was chosen, or that of the browser; UTC while neither is known."""
        return ZoneInfo(self.preferences.zone or self.preferences.browser_zone or "UTC")

    @property
    def is_signed_in(self) -> bool:
        """With a session, which can be ended."""
        return self.principal is not None and self.principal.has_session

    def may(self, right: str) -> bool:
        """By the text of a right, as in `runs:operate`."""
        return self.principal is not None and self.principal.may(self.rights[right])

    def job_path(self, name: str) -> str:
        """The page of a job; its runs if there is none, or it may not be seen."""
        return f"{self._jobs_path}{path_part(name)}"

    @cached_property
    def _jobs_path(self) -> str:
        has_page = any(entry.path == "/jobs" for group in self.menu for entry in group.entries)
        return "/jobs/" if has_page else "/runs?job="

    def is_at(self, path: str) -> bool:
        """Whether the page that is shown is this one of the menu, or below it."""
        here = self.link.path
        return here == path or (path != "/" and here.startswith(f"{path}/"))

    @property
    def json_path(self) -> str:
        """The twin of the page, for programs."""
        link = self.link
        path = "/overview" if link.path == "/" else link.path
        return str(PageLink(path=f"{path}.json", parameters=link.parameters))


def viewer_of(request: Request) -> Viewer:
    preferences = preferences_of(request)
    principal: Principal | None = getattr(request.state, "principal", None)
    return Viewer(
        principal=principal,
        preferences=preferences,
        language=language_of(request, preferences),
        now=_clock.now(),
        origin=f"{request.url.scheme}://{request.url.netloc}",
        link=PageLink(path=request.url.path, parameters=tuple(request.query_params.multi_items())),
        flash=flash_of(request, lambda: request.app.state.application.api_requests.cursor_key),
        is_fragment=FRAGMENT_HEADER in request.headers,
        accepts_gzip="gzip" in request.headers.get("accept-encoding", ""),
        menu=_menu(request, principal),
        rights=request.app.state.application.rights,
    )


def _entries(group: MenuGroup) -> tuple[MenuEntry, ...]:
    if group.label != COLLECTIONS:
        return group.entries
    return tuple(entry for pages in extensions() for entry in pages.menu)


def _menu(request: Request, principal: Principal | None) -> tuple[MenuGroup, ...]:
    """What exists and may be seen."""
    if principal is None:
        return ()
    existing: frozenset[str] = request.app.state.page_paths
    groups = (
        MenuGroup(
            group.label,
            tuple(
                entry
                for entry in _entries(group)
                if entry.path in existing and principal.may(entry.right)
            ),
        )
        for group in MENU
    )
    return tuple(group for group in groups if group.entries)
