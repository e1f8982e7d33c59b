"""`/settings`: read and change settings while everything is running."""

from typing import Annotated, Literal

from fastapi import Path
from pydantic import Field

from tsuzuki.model.access import Right
from tsuzuki.services.settings import SettingView
from tsuzuki.web.answers import Integer, Model, Moment, Number
from tsuzuki.web.context import Context
from tsuzuki.web.route import ApiRouter

router = ApiRouter("settings")

Key = Annotated[str, Path(min_length=1, max_length=100, examples=["lease_seconds"])]


class SettingOut(Model):
    """A setting: its value, its default and bounds, what it means, and who set it (null: the default)."""

    key: str
    kind: Literal["int", "float"]
    default: int | float
    minimum: int | float
    maximum: int | float
    description: str
    value: int | float
    updated_at: Moment | None
    updated_by: str | None


class SettingsOut(Model):
    items: list[SettingOut]


class SettingChange(Model):
    value: Integer | Number = Field(examples=[12])


def setting_out(view: SettingView) -> SettingOut:
    return SettingOut.model_validate(view.as_dict())


@router.get("/settings", right=Right.SETTINGS_READ)
def list_settings(context: Context) -> SettingsOut:
    """Every setting with the value in use."""
    return SettingsOut(items=[setting_out(view) for view in context.application.settings.find()])


@router.get("/settings/{key}", right=Right.SETTINGS_READ, refuses=[404])
def get_setting(context: Context, key: Key) -> SettingOut:
    """One setting."""
    return setting_out(context.application.settings.get(key))


@router.put("/settings/{key}", right=Right.SETTINGS_WRITE, refuses=[404])
def set_setting(context: Context, key: Key, body: SettingChange) -> SettingOut:
    """Change a setting; running engines take it up by themselves."""
    return setting_out(context.application.settings.set(key, body.value))


@router.delete("/settings/{key}", right=Right.SETTINGS_WRITE, refuses=[404])
def reset_setting(context: Context, key: Key) -> SettingOut:
    """Give a setting its default back."""
    return setting_out(context.application.settings.reset(key))
