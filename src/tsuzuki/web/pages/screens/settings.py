"""Settings: values that can be changed while everything is running, with meaning, default and last change."""

from types import MappingProxyType
from typing import Annotated

from fastapi import Form, Response
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.model.access import Right
from tsuzuki.web.answers import Model
from tsuzuki.web.api.settings import Key, SettingOut, setting_out
from tsuzuki.web.pages.context import Page
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.route import Screen

screen = Screen()

GROUPS = MappingProxyType(
    {
        message("Leader"): (
            "lease_seconds",
            "lease_renew_interval_seconds",
            "lease_margin_seconds",
        ),
        message("Workers"): (
            "heartbeat_interval_seconds",
            "worker_ttl_seconds",
            "worker_grace_seconds",
            "reassign_after_seconds",
            "continuation_retry_count",
            "continuation_retry_interval_seconds",
            "drain_timeout_seconds",
        ),
        message("Runs"): (
            "max_orphans",
            "misfire_grace_seconds",
            "poll_interval_seconds",
            "kill_grace_seconds",
            "transaction_seconds_max",
        ),
        message("Retention"): (
            "log_bytes_max_per_run",
            "log_retention_days_db",
            "run_retention_days",
        ),
    }
)
MEANINGS = MappingProxyType(
    {
        "lease_seconds": message("Leader lease duration without renewal."),
        "lease_renew_interval_seconds": message("Interval at which the leader renews its lease."),
        "lease_margin_seconds": message(
            "Time before lease expiry at which a leader that cannot renew stops leading."
        ),
        "heartbeat_interval_seconds": message("Worker heartbeat interval."),
        "worker_ttl_seconds": message(
            "Time without a heartbeat after which a worker is detached and receives no new runs."
        ),
        "worker_grace_seconds": message(
            "Additional time without a heartbeat after which a worker's runs are considered lost."
        ),
        "reassign_after_seconds": message(
            "Maximum time a run stays assigned to a detached worker."
        ),
        "continuation_retry_count": message(
            "Number of confirmation requests a detached worker sends before it stops its runs."
        ),
        "continuation_retry_interval_seconds": message("Interval between confirmation requests."),
        "max_orphans": message(
            "Number of orphanings and lost workers of a run before further retries count against its limit."
        ),
        "misfire_grace_seconds": message(
            "Maximum delay at which a scheduled run still counts as on time."
        ),
        "poll_interval_seconds": message("Polling interval when no wake-up arrives."),
        "drain_timeout_seconds": message("Time a worker waits for its runs when it shuts down."),
        "kill_grace_seconds": message(
            "Time between SIGTERM and SIGKILL when a command is stopped."
        ),
        "transaction_seconds_max": message(
            "SQLite: maximum duration of a handler's transaction. A longer one is rolled back and its run fails."
        ),
        "log_bytes_max_per_run": message(
            "Maximum log size of a run. Longer logs keep their first and last lines."
        ),
        "log_retention_days_db": message(
            "Age at which logs move from the database to the archive (PostgreSQL: only if one is configured)."
        ),
        "run_retention_days": message(
            "Age at which finished runs are deleted; 0 keeps them forever."
        ),
    }
)
"""The descriptions of the settings as messages, so that they are translated."""

CHANGED = message("%(key)s is now %(value)s. Running processes pick up the change automatically.")
RESET = message("%(key)s was reset to its default, %(value)s.")


class SettingsView(Model):
    settings: list[SettingOut]

    def meaning(self, setting: SettingOut) -> str:
        return MEANINGS[setting.key]

    def groups(self) -> list[tuple[str, list[SettingOut]]]:
        """With their headings, for the page."""
        by_key = {setting.key: setting for setting in self.settings}
        return [(label, [by_key[key] for key in keys]) for label, keys in GROUPS.items()]


class SettingPageView(Model):
    """`typed` is what a refused form was sent with."""

    setting: SettingOut
    typed: str | None = None

    @property
    def meaning(self) -> str:
        return MEANINGS[self.setting.key]


class SettingForm(BaseModel):
    model_config = ConfigDict(extra="forbid")

    value: Annotated[str, Field(max_length=100)] = ""


@screen.page("/settings", right=Right.SETTINGS_READ, template="screens/settings.html")
def settings_page(context: Page) -> SettingsView:
    return SettingsView(
        settings=[setting_out(view) for view in context.application.settings.find()]
    )


@screen.page("/settings/{key}", right=Right.SETTINGS_READ, template="screens/setting.html")
def setting_page(context: Page, key: Key, form: SettingForm | None = None) -> SettingPageView:
    setting = setting_out(context.application.settings.get(key))
    return SettingPageView(setting=setting, typed=form.value if form else None)


@screen.form("/settings/{key}", right=Right.SETTINGS_WRITE, page=setting_page)
def change(context: Page, key: Key, form: Annotated[SettingForm, Form()]) -> Response:
    changed = context.application.settings.set(key, form.value.strip())
    return context.redirect("/settings", CHANGED, key=key, value=changed.value)


@screen.confirmation(
    "/settings/{key}/reset",
    right=Right.SETTINGS_WRITE,
    template="screens/setting_reset.html",
    question=setting_page,
)
def reset(context: Page, key: Key) -> Response:
    changed = context.application.settings.reset(key)
    return context.redirect("/settings", RESET, key=key, value=changed.value)
