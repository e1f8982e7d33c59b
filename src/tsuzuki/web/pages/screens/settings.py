"""Settings: what can be tuned while everything runs, with its meaning, its default, and who set it."""

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
        "lease_seconds": message("How long the leader's lease lasts without being renewed."),
        "lease_renew_interval_seconds": message("How often the leader renews its lease."),
        "lease_margin_seconds": message(
            "How long before the end of its lease a leader stops by itself."
        ),
        "heartbeat_interval_seconds": message("How often a worker sends a heartbeat."),
        "worker_ttl_seconds": message(
            "After this time without a heartbeat a worker is detached: no new runs."
        ),
        "worker_grace_seconds": message(
            "After this further time of silence a worker's runs fail as lost."
        ),
        "reassign_after_seconds": message("How long a run may stay assigned to a detached worker."),
        "continuation_retry_count": message(
            "How often a detached worker requests confirmation before it stops its runs."
        ),
        "continuation_retry_interval_seconds": message("The pause between two such requests."),
        "max_orphans": message(
            "Once a run was orphaned, or lost its worker, this often by itself, a further retry uses up its retries."
        ),
        "misfire_grace_seconds": message(
            "A tick that is at most this late still counts as on time."
        ),
        "poll_interval_seconds": message("How often to poll for work when no wake-up came."),
        "drain_timeout_seconds": message("How long a worker that shuts down waits for its runs."),
        "kill_grace_seconds": message("The time between SIGTERM and SIGKILL to a command."),
        "transaction_seconds_max": message(
            "SQLite: the longest transaction of a handler. A longer one is rolled back, and its run fails."
        ),
        "log_bytes_max_per_run": message(
            "The size limit of a run's log: a longer one keeps its first and its last lines."
        ),
        "log_retention_days_db": message(
            "Logs older than this move from the database to the archive, if there is one: SQLite has one by itself, "
            "PostgreSQL only if you name one."
        ),
        "run_retention_days": message(
            "Finished runs older than this are deleted; 0 keeps them for ever."
        ),
    }
)
"""The descriptions of the settings as messages, so that they are translated."""

CHANGED = message("%(key)s is %(value)s now. Running processes take it up by themselves.")
RESET = message("%(key)s has its default again: %(value)s.")


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
