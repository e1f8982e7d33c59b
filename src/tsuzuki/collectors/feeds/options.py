"""Options: the keys of a feeds job, and the section `feeds` of an installation.

Secrets stand in the section only. What a job says is stored with its definition; so a feed names its model, its
account and its request settings, and the section says what these are.
"""

import re
from enum import StrEnum
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, StrictBool, StrictInt, StrictStr

from tsuzuki.config import Expects, InvalidValue
from tsuzuki.config.schema.field_types import Name, PositiveSeconds, Zone
from tsuzuki.config.schema.strict_model import StrictModel

DEFAULT = "default"
"""The name of the model and of the account that a feed uses if it names none."""

BUDGET_ZONE = "America/Los_Angeles"
"""Gemini's day ends at midnight Pacific time."""

GEMINI_MODEL = "gemini-flash-lite-latest"
TEMPLATE = "{title}\n\n{summary}\n\n{url}"
PLACEHOLDERS = frozenset({"title", "summary", "url", "feed", "author"})
PATTERNS_MAX = 100
FEEDS_MAX = 1_000
DAY_SECONDS = 86_400.0


class Provider(StrEnum):
    """Who answers for a model."""

    GEMINI = "gemini"
    OPENAI = "openai"
    """Any server that speaks the API of OpenAI, such as Ollama or vLLM."""

    EXTRACTIVE = "extractive"
    """No model: every article with a text is worth a post, and the summary is its first sentences."""


class AccountType(StrEnum):
    """Where posts go."""

    MASTODON = "mastodon"
    WEBHOOK = "webhook"
    FILE = "file"


class Visibility(StrEnum):
    """Who sees a post."""

    PUBLIC = "public"
    UNLISTED = "unlisted"
    PRIVATE = "private"
    DIRECT = "direct"


class OnChange(StrEnum):
    """What to do if an article changes after it was posted."""

    IGNORE = "ignore"
    EDIT = "edit"
    REPLY = "reply"


def _web_address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("not a web address")
    if parts.username or parts.password:
        raise InvalidValue(
            "a password is written out in this address",
            hint="Put it into a header: `requests:` of the section `feeds`, as ${NAME}.",
            code="secret_in_file",
        )
    return text


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as problem:
        raise InvalidValue(
            f"{text!r} is not a regular expression: {problem}",
            hint="Write a word, or a pattern such as ^Notice.*(2026|2027)",
        ) from None
    return text


def _template(text: str) -> str:
    written = set(re.findall(r"\{([^{}]*)\}", text))
    unknown = sorted(written - PLACEHOLDERS)
    if unknown or "url" not in written:
        raise InvalidValue(
            f"`template` has no {{{unknown[0]}}}" if unknown else "`template` has no {url}",
            hint="It may have {title}, {summary}, {url}, {feed} and {author}, and needs {url}: "
            "a post is known again by its link.",
        )
    return text


def _language(text: str) -> str:
    if not re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", text):
        raise ValueError("not a language code")
    return text


_WebAddress = Annotated[
    StrictStr, AfterValidator(_web_address), Expects("an address with http:// or https://")
]
_Patterns = Annotated[
    list[Annotated[StrictStr, AfterValidator(_pattern), Expects("a regular expression")]],
    Field(max_length=PATTERNS_MAX),
    Expects(f"a list of up to {PATTERNS_MAX} regular expressions"),
]
_Count = Annotated[
    StrictInt, Field(ge=0, le=1_000_000), Expects("a whole number from 0 to 1000000")
]
_Money = Annotated[float, Field(ge=0, le=1_000_000), Expects("an amount of US dollars")]
_Flag = Annotated[StrictBool, Expects("true or false")]
_Instruction = Annotated[StrictStr, Field(min_length=1, max_length=20_000), Expects("text")]


class Patterns(StrictModel):
    """Regular expressions, searched for without regard to case. One match in any of the keys is a match."""

    title: _Patterns = Field(default_factory=list)
    url: _Patterns = Field(default_factory=list)
    author: _Patterns = Field(default_factory=list)
    category: _Patterns = Field(default_factory=list)


class Budget(StrictModel):
    """What may be spent. A limit that is not set does not count; a request that could exceed one is not sent."""

    requests_per_minute: _Count | None = None
    requests_per_day: _Count | None = None
    tokens_per_day: _Count | None = None
    cost_per_day: _Money | None = None


class PostCaps(StrictModel):
    """How many posts a feed may make; the rest waits, the oldest first."""

    per_run: _Count | None = 5
    per_hour: _Count | None = 10
    per_day: _Count | None = 50


class FeedOptions(StrictModel):
    """The keys of one feed of a job."""

    url: _WebAddress
    model: Name = DEFAULT
    account: Name = DEFAULT
    request: Name | None = None
    language: Annotated[
        StrictStr, AfterValidator(_language), Expects("a language code such as en or ja")
    ] = "en"
    screening: _Flag = True
    screening_prompt: _Instruction | None = None
    summary_prompt: _Instruction | None = None
    summary_characters: Annotated[
        StrictInt, Field(ge=20, le=10_000), Expects("a whole number from 20 to 10000")
    ] = 300
    include: Patterns = Patterns()
    exclude: Patterns = Patterns()
    max_age: PositiveSeconds | None = None
    backfill: Annotated[
        Literal["all"] | Annotated[StrictInt, Field(ge=0, le=100_000)],
        Expects("`all`, or a whole number from 0 to 100000"),
    ] = 0
    attachments: Annotated[
        StrictInt, Field(ge=0, le=10), Expects("a whole number from 0 to 10")
    ] = 2
    download_megabytes: Annotated[
        StrictInt, Field(ge=1, le=50), Expects("a whole number from 1 to 50")
    ] = 10
    fetch_every: PositiveSeconds | None = None
    full_fetch_every: PositiveSeconds = DAY_SECONDS
    silent_after: PositiveSeconds | None = None
    caps: PostCaps = PostCaps()
    budget: Budget = Budget()
    hold: _Flag = False
    on_change: OnChange = OnChange.IGNORE
    visibility: Visibility = Visibility.UNLISTED
    sensitive: _Flag = False
    content_warning: (
        Annotated[StrictStr, Field(min_length=1, max_length=200), Expects("text")] | None
    ) = None
    template: Annotated[
        StrictStr,
        Field(min_length=1, max_length=2_000),
        AfterValidator(_template),
        Expects("text with {title}, {summary} and {url}"),
    ] = TEMPLATE


class FeedsOptions(StrictModel):
    """The keys of one job."""

    feeds: Annotated[
        dict[Name, FeedOptions],
        Field(min_length=1, max_length=FEEDS_MAX),
        Expects("a mapping of names to feeds"),
    ]
    items_per_run: Annotated[
        StrictInt, Field(ge=0, le=100_000), Expects("a whole number from 0 to 100000")
    ] = 20
    retry_limit: Annotated[
        StrictInt, Field(ge=0, le=1_000), Expects("a whole number from 0 to 1000")
    ] = 5
    retry_backoff: PositiveSeconds = 1_800.0
    retry_backoff_cap: PositiveSeconds = DAY_SECONDS


class ModelSettings(StrictModel):
    """A model, by the name under which feeds use it."""

    provider: Provider
    model: StrictStr | None = None
    base_url: _WebAddress | None = None
    api_key: Annotated[SecretStr, Expects("a key, written as ${NAME}")] | None = None
    timeout: PositiveSeconds = 60.0
    output_tokens_max: Annotated[
        StrictInt, Field(ge=64, le=65_536), Expects("a whole number from 64 to 65536")
    ] = 2_048
    dollars_per_million_input_tokens: _Money | None = None
    dollars_per_million_output_tokens: _Money | None = None
    budget: Budget = Budget()


class AccountSettings(StrictModel):
    """Where posts go, by the name under which feeds use it: a Mastodon account (`base_url`, `access_token`), a
    webhook (`url`, `secret`) or a file of JSON lines (`path`)."""

    type: AccountType
    base_url: _WebAddress | None = None
    access_token: Annotated[SecretStr, Expects("a token, written as ${NAME}")] | None = None
    url: _WebAddress | None = None
    secret: Annotated[SecretStr, Expects("a secret, written as ${NAME}")] | None = None
    is_idempotent: _Flag = Field(default=False, alias="idempotent")
    path: StrictStr | None = None
    timeout: PositiveSeconds = 30.0


class RequestSettings(StrictModel):
    """How a feed and its pages are asked for. Values may be secrets, written as ${NAME}."""

    user_agent: StrictStr | None = None
    headers: dict[Name, SecretStr] = Field(default_factory=dict)
    cookies: dict[Name, SecretStr] = Field(default_factory=dict)


class FeedsSection(StrictModel):
    """What all feeds jobs of an installation share."""

    models: dict[Name, ModelSettings] = Field(
        default_factory=lambda: {DEFAULT: ModelSettings(provider=Provider.EXTRACTIVE)}
    )
    """Without any, the default one is extractive: no key is needed to try a feed."""

    accounts: dict[Name, AccountSettings] = Field(default_factory=dict)
    requests: dict[Name, RequestSettings] = Field(default_factory=dict)
    budget: Budget = Budget()
    budget_zone: Zone = BUDGET_ZONE
    private_hosts: Annotated[
        list[StrictStr], Expects("a list of host names or addresses that may be private")
    ] = Field(default_factory=list)
    request_timeout: PositiveSeconds = 60.0
    concurrency: Annotated[int, Field(ge=1, le=256), Expects("a whole number from 1 to 256")] = 16
