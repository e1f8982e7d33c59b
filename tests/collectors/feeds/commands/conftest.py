"""Fixtures of `support.command_fixtures`."""

from support.command_fixtures import (
    collected,
    collected_once,
    empty,
    initialised,
    team,
    team_once,
    workspace,
)

__all__ = [
    "collected",
    "collected_once",
    "empty",
    "initialised",
    "team",
    "team_once",
    "workspace",
]
