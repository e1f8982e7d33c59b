"""Fixtures of `support.web_fixtures`."""

from support.web_fixtures import (
    client,
    served,
    workspace,
)

__all__ = [
    "client",
    "served",
    "workspace",
]
