"""One's own preferences: language, theme, zone, single keys."""

from typing import Annotated

from fastapi import Form, Response
from pydantic import BaseModel, ConfigDict

from tsuzuki.model.access import Right
from tsuzuki.model.errors import UsageError
from tsuzuki.web.answers import Model
from tsuzuki.web.pages.context import Page
from tsuzuki.web.pages.language import LANGUAGES, message
from tsuzuki.web.pages.preferences import Preferences, Theme, keep_preferences, zone_names
from tsuzuki.web.pages.route import Screen

screen = Screen()


class PreferencesView(Model):
    """`language` and `zone` are null where the browser's are used."""

    language: str | None
    theme: Theme
    zone: str | None
    single_keys: bool
    zones: list[str]


class PreferencesForm(BaseModel):
    model_config = ConfigDict(extra="forbid")

    language: str = ""
    theme: Theme = Theme.SYSTEM
    zone: str = ""
    single_keys: bool = False


@screen.page("/preferences", right=Right.ACCESS_OWN, template="screens/preferences.html")
def preferences_page(context: Page) -> PreferencesView:
    kept = context.viewer.preferences
    return PreferencesView(
        language=kept.language,
        theme=kept.theme,
        zone=kept.zone,
        single_keys=kept.has_single_keys,
        zones=list(zone_names()),
    )


@screen.form("/preferences", right=Right.ACCESS_OWN, page=preferences_page)
def keep(context: Page, form: Annotated[PreferencesForm, Form()]) -> Response:
    if form.language and form.language not in LANGUAGES:
        raise UsageError(f"unknown language {form.language!r}", code="language_unknown")
    if form.zone and form.zone not in zone_names():
        raise UsageError(f"there is no time zone {form.zone!r}", code="zone_unknown")
    response = context.redirect("/preferences", message("Preferences saved in this browser."))
    keep_preferences(
        response,
        Preferences(
            language=form.language or None,
            theme=form.theme,
            zone=form.zone or None,
            has_single_keys=form.single_keys,
        ),
    )
    return response
