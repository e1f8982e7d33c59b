"""Which pages the reference has, by the names of their files."""

from collections.abc import Callable

from documentation.reference.agents import agents_page
from documentation.reference.api import api_page
from documentation.reference.commands import commands_page
from documentation.reference.configuration import configuration_page
from documentation.reference.errors import errors_page
from documentation.reference.metrics import metrics_page
from documentation.reference.settings import settings_page

PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands_page,
    "configuration.md": configuration_page,
    "settings.md": settings_page,
    "api.md": api_page,
    "agents.md": agents_page,
    "errors.md": errors_page,
    "metrics.md": metrics_page,
}
