"""What the menu of the page has: each screen once, shown if it exists and the viewer may see it."""

from dataclasses import dataclass

from tsuzuki.model.access import AnyRight, Right
from tsuzuki.web.pages.language import message


@dataclass(frozen=True)
class MenuEntry:
    """`key` follows `g` on the keyboard."""

    label: str
    path: str
    right: AnyRight
    icon: str
    key: str


@dataclass(frozen=True)
class MenuGroup:
    label: str | None
    entries: tuple[MenuEntry, ...]


COLLECTIONS = message("Collections")
"""The group of the collectors' entries."""

MENU = (
    MenuGroup(
        None,
        (
            MenuEntry(message("Overview"), "/", Right.RUNS_READ, "overview", "o"),
            MenuEntry(message("Runs"), "/runs", Right.RUNS_READ, "runs", "r"),
            MenuEntry(message("Jobs"), "/jobs", Right.JOBS_READ, "jobs", "j"),
            MenuEntry(message("Failures"), "/failures", Right.RUNS_READ, "failed", "f"),
            MenuEntry(message("Bulk actions"), "/bulk", Right.RUNS_READ, "bulk", "k"),
            MenuEntry(message("Saved views"), "/views", Right.RUNS_READ, "views", "v"),
        ),
    ),
    MenuGroup(COLLECTIONS, ()),
    MenuGroup(
        message("System"),
        (
            MenuEntry(message("Workers"), "/workers", Right.WORKERS_READ, "workers", "w"),
            MenuEntry(message("Events"), "/events", Right.EVENTS_READ, "events", "e"),
            MenuEntry(
                message("Verification"), "/verification", Right.RUNS_READ, "verification", "p"
            ),
            MenuEntry(message("Settings"), "/settings", Right.SETTINGS_READ, "settings", "s"),
            MenuEntry(message("Audit log"), "/audit", Right.AUDIT_READ, "audit", "a"),
        ),
    ),
    MenuGroup(
        message("Access"),
        (
            MenuEntry(message("Tokens"), "/tokens", Right.ACCESS_OWN, "token", "t"),
            MenuEntry(message("Sessions"), "/sessions", Right.ACCESS_OWN, "session", "y"),
            MenuEntry(message("Users"), "/users", Right.ACCESS_MANAGE, "user", "u"),
        ),
    ),
)
