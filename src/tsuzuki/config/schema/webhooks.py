"""The section `webhooks`: which senders may emit events, and how they prove themselves.

A secret is exactly one variable, `${NAME}`; it is filled in when a request comes, so that a missing one stops only
that webhook.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, SecretStr, StrictStr

from tsuzuki.config.environment.expansion import HERE, expand, variable_names
from tsuzuki.config.schema.field_types import Expects, Name
from tsuzuki.config.schema.problems import ConfigProblem
from tsuzuki.config.schema.strict_model import StrictModel
from tsuzuki.config.schema.validation import validate, wrong_value
from tsuzuki.config.yaml.nodes import KeyPath
from tsuzuki.model.errors import ConfigurationError, FilePlace
from tsuzuki.model.webhook_signatures import SECRET_HEADER, WebhookKind

SECTION = "webhooks"
SECRET_KEYS = ("secret", "old_secret")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?")
_VARIABLE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_ANY_VARIABLE = "${NAME}"


class WebhookKeys(StrictModel):
    """The keys of one webhook."""

    kind: WebhookKind
    """How the sender proves itself."""
    secret: SecretStr
    """The secret, exactly one variable."""
    old_secret: SecretStr | None = None
    """A second one, while the sender changes over to the new secret."""
    event: Name | None = None
    """The type of the event that is emitted; without it `webhook.` and the name."""
    header: (
        Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9-]{1,100}$"), Expects("a header's name")]
        | None
    ) = None
    """For `kind: header`: where the secret stands; without it `X-Webhook-Secret`."""


class _Section(StrictModel):
    webhooks: Annotated[dict[str, WebhookKeys], Expects("a mapping of names to webhooks")]


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """One webhook of the file; its secrets are the variables that hold them."""

    name: str
    kind: WebhookKind
    event: str
    """The type of the events that it emits."""
    header: str
    """Where the secret stands, if that is the proof."""
    variables: tuple[str, ...]
    """As they are written, the newer secret first."""
    place: FilePlace | None = field(default=None, compare=False)
    environ: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    cwd: Path = field(default=HERE, compare=False, repr=False)
    """The base of relative paths in `…_FILE` variables."""

    def secrets(self) -> tuple[str, ...]:
        """The values of its variables. Raises `ConfigurationError` if one is not set or empty."""
        values = tuple(
            expand(text, self.environ, cwd=self.cwd, place=self.place) for text in self.variables
        )
        if not all(values):
            raise ConfigurationError(
                f"a secret of webhook {self.name} is empty",
                hint=f"Set {' and '.join(self.variables)}.",
                place=self.place,
                code="webhook_secret",
            )
        return values

    def in_process(
        self, environ: Mapping[str, str], *, cwd: Path, place: FilePlace | None
    ) -> "Webhook":
        return replace(self, environ=environ, cwd=cwd, place=place)


def read_webhooks(data: Mapping[str, Any], problems: list[ConfigProblem]) -> tuple[Webhook, ...]:
    """The webhooks in the file. The `problems` of their keys are added."""
    written = data.get(SECTION)
    if written is None:
        return ()
    if not isinstance(written, dict):
        expected = "a mapping of names to webhooks"
        problems.append(wrong_value((SECTION,), (SECTION,), expected, written))
        return ()
    found = [*_name_problems(written), *_secret_problems(written)]
    # What is written in place of a secret is neither validated nor quoted.
    section = validate(_Section, {SECTION: _without_secrets(written)}, path=(), problems=found)
    if section is not None:
        found.extend(_header_problems(section))
    problems.extend(found)
    if section is None or found:
        return ()
    return tuple(_webhook(name, keys, written[name]) for name, keys in section.webhooks.items())


def secret_variables(webhooks: tuple[Webhook, ...]) -> frozenset[str]:
    texts = [text for webhook in webhooks for text in webhook.variables]
    return frozenset().union(*map(variable_names, texts))


def path_of(webhook: Webhook) -> KeyPath:
    return (SECTION, webhook.name)


def _webhook(name: str, keys: WebhookKeys, written: Mapping[str, Any]) -> Webhook:
    return Webhook(
        name=name,
        kind=keys.kind,
        event=keys.event or f"webhook.{name}",
        header=keys.header or SECRET_HEADER,
        variables=tuple(written[key] for key in SECRET_KEYS if written.get(key) is not None),
    )


def _without_secrets(written: Mapping[str, Any]) -> dict[str, Any]:
    return {
        str(name): {
            key: _ANY_VARIABLE if key in SECRET_KEYS and value is not None else value
            for key, value in body.items()
        }
        if isinstance(body, dict)
        else body
        for name, body in written.items()
    }


def _name_problems(written: Mapping[str, Any]) -> Iterator[ConfigProblem]:
    for name in written:
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            yield ConfigProblem(
                path=(SECTION, name),
                message=f"invalid webhook name {name!r}",
                hint="It becomes part of a URL: use up to 64 letters and digits, with - and _ in "
                "between.",
                code="webhook_name",
                at_key=True,
            )


def _secret_problems(written: Mapping[str, Any]) -> Iterator[ConfigProblem]:
    for name, body in written.items():
        for key in SECRET_KEYS if isinstance(body, dict) else ():
            value = body.get(key)
            if value is None or (isinstance(value, str) and _VARIABLE.fullmatch(value)):
                continue
            yield ConfigProblem(
                path=(SECTION, name, key),
                message=f"`{SECTION}.{name}.{key}` must be a single variable, such as ${{WEBHOOK_SECRET}}",
                hint="Keep secrets out of the file: write ${NAME} and set that environment variable.",
                code="secret_in_file",
                is_secret=True,
            )


def _header_problems(section: _Section) -> Iterator[ConfigProblem]:
    for name, keys in section.webhooks.items():
        if keys.header is not None and keys.kind is not WebhookKind.HEADER:
            yield ConfigProblem(
                path=(SECTION, name, "header"),
                message=f"`header` does not apply to webhooks of kind {keys.kind}",
                hint="Remove it, or set kind: header.",
                code="unknown_key",
                at_key=True,
            )
