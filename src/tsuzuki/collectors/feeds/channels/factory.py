"""Opens the channel of an account from its settings. A channel's library is loaded when one is opened."""

from pathlib import Path

from pydantic import SecretStr

from tsuzuki.collectors.feeds.channels.protocol import Channel
from tsuzuki.collectors.feeds.options import AccountSettings, AccountType, FeedsSection
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.suggestion import did_you_mean


def settings_of(section: FeedsSection, account: str) -> AccountSettings:
    """Raises `ConfigurationError` if there is no such account."""
    found = section.accounts.get(account)
    if found is None:
        raise ConfigurationError(
            f"account {account!r} is missing in the section `feeds`",
            hint=f"{did_you_mean(account, section.accounts)}Add it under `accounts:`.",
            code="no_account",
        )
    return found


def open_channel(
    settings: AccountSettings, *, account: str, clock: Clock, workspace: Path
) -> Channel:
    """Raises `ConfigurationError` if a setting that this type needs is not there."""
    seconds = settings.timeout
    match settings.type:
        case AccountType.MASTODON:
            from tsuzuki.collectors.feeds.channels.mastodon import (  # noqa: PLC0415 - half a second
                MastodonChannel,
            )

            return MastodonChannel(
                base_url=_needed(settings.base_url, "base_url", account),
                access_token=_secret(settings.access_token, "access_token", account),
                clock=clock,
                seconds=seconds,
            )
        case AccountType.WEBHOOK:
            from tsuzuki.collectors.feeds.channels.webhook import (  # noqa: PLC0415 - only if used
                WebhookChannel,
            )

            return WebhookChannel(
                url=_needed(settings.url, "url", account),
                secret=_secret(settings.secret, "secret", account),
                is_idempotent=settings.is_idempotent,
                clock=clock,
                seconds=seconds,
            )
        case AccountType.FILE:
            from tsuzuki.collectors.feeds.channels.file import (  # noqa: PLC0415 - only if used
                FileChannel,
            )

            return FileChannel(workspace / _needed(settings.path, "path", account))


def _secret(said: SecretStr | None, name: str, account: str) -> str:
    return _needed(said.get_secret_value() if said else None, name, account)


def _needed(said: str | None, name: str, account: str) -> str:
    if not said:
        raise ConfigurationError(
            f"account {account!r} has no `{name}`",
            hint=f"Add `{name}:` to the account in the section `feeds`.",
            code="account_incomplete",
        )
    return said
