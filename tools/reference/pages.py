"""Which pages the reference has, by the names of their files."""

from collections.abc import Callable

from tools.reference.agents import agents_page
from tools.reference.api import api_page
from tools.reference.commands import commands_page
from tools.reference.configuration import configuration_page
from tools.reference.errors import errors_page
from tools.reference.metrics import metrics_page
from tools.reference.moves import moves_page
from tools.reference.schema import SCHEMAS
from tools.reference.settings import settings_page

PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands_page,
    "configuration.md": configuration_page,
    "settings.md": settings_page,
    "api.md": api_page,
    "agents.md": agents_page,
    "errors.md": errors_page,
    "metrics.md": metrics_page,
    "moves.md": moves_page,
    **SCHEMAS,
}
