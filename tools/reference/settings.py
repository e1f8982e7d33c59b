"""The page of the settings: what can be changed while everything runs."""

from tools.reference.markdown import code, page, table
from tsuzuki.model.settings import SETTINGS


def settings_page() -> str:
    rows = [
        (
            code(setting.key),
            "whole number" if setting.kind is int else "number",
            code(setting.default),
            f"{setting.minimum} … {setting.maximum}",
            setting.description,
        )
        for setting in SETTINGS.values()
    ]
    return page(
        "Settings",
        "They are stored in the database and hold for all processes. `tsuzuki settings set KEY VALUE` changes one"
        " while everything runs, `tsuzuki settings ls` shows what is in force. A combination that would be unsafe is"
        " refused.",
        table(("setting", "value", "default", "bounds", "meaning"), rows),
    )
