"""Settings: their effective values and meanings, and changing them."""

from dataclasses import asdict, dataclass
from datetime import datetime

from tsuzuki.model.settings import SETTINGS, Setting, find_setting
from tsuzuki.services.acting import ActingService
from tsuzuki.store import settings
from tsuzuki.store.sql.database import Database


@dataclass(frozen=True, kw_only=True)
class SettingView:
    """A setting, its value in force and who set it; None for a default."""

    setting: Setting
    value: int | float
    updated_at: datetime | None = None
    updated_by: str | None = None

    def as_dict(self) -> dict[str, object]:
        about = asdict(self.setting)
        about["kind"] = self.setting.kind.__name__
        return {
            **about,
            "value": self.value,
            "updated_at": self.updated_at,
            "updated_by": self.updated_by,
        }


class Settings(ActingService):
    def __init__(self, *, database: Database, actor: str) -> None:
        self._database = database
        self._actor = actor

    def find(self) -> list[SettingView]:
        with self._database.read() as connection:
            current = settings.load(connection)
            stored = {row.key: row for row in settings.find(connection)}
        return [
            SettingView(
                setting=setting,
                value=getattr(current, key),
                updated_at=stored[key].updated_at if key in stored else None,
                updated_by=stored[key].updated_by if key in stored else None,
            )
            for key, setting in SETTINGS.items()
        ]

    def get(self, key: str) -> SettingView:
        find_setting(key)
        return next(view for view in self.find() if view.setting.key == key)

    def set(self, key: str, value: object) -> SettingView:
        with self._database.write() as connection:
            settings.put(connection, key=key, value=value, actor=self._actor)
        return self.get(key)

    def reset(self, key: str) -> SettingView:
        """Back to the default."""
        with self._database.write() as connection:
            settings.reset(connection, key=key, actor=self._actor)
        return self.get(key)
