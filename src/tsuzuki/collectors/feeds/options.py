"""Options: the keys of a feeds job, and the section `feeds` of an installation.

Secrets stand in the section only. What a job says is stored with its definition; so a feed names its model, its
account and its request settings, and the section says what these are.
"""

import re
from enum import StrEnum
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, StrictBool, StrictInt, StrictStr

from tsuzuki.config import Expects, InvalidValue, JobKind
from tsuzuki.config.schema.field_types import Name, PositiveSeconds, Zone
from tsuzuki.config.schema.strict_model import StrictModel
from tsuzuki.model.job_question import JOB_NAME, JobQuestion

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
            "this address contains a password",
            hint="Send it in a header instead: `requests:` in the section `feeds`, as ${NAME}.",
            code="secret_in_file",
        )
    return text


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as problem:
        raise InvalidValue(
            f"invalid regular expression {text!r}: {problem}",
            hint="Write a word, or a pattern such as ^Notice.*(2026|2027)",
        ) from None
    return text


def _template(text: str) -> str:
    written = set(re.findall(r"\{([^{}]*)\}", text))
    unknown = sorted(written - PLACEHOLDERS)
    if unknown or "url" not in written:
        raise InvalidValue(
            f"unknown placeholder {{{unknown[0]}}} in `template`"
            if unknown
            else "`template` requires {url}",
            hint="Allowed are {title}, {summary}, {url}, {feed} and {author}. {url} is required "
            "because posts are recognized by their link.",
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
    """For the title."""
    url: _Patterns = Field(default_factory=list)
    """For the link."""
    author: _Patterns = Field(default_factory=list)
    """For an author."""
    category: _Patterns = Field(default_factory=list)
    """For a category."""


class Budget(StrictModel):
    """What may be spent. A limit that is not set does not count; a request that could exceed one is not sent."""

    requests_per_minute: _Count | None = None
    """Requests in a minute of the clock."""
    requests_per_day: _Count | None = None
    """Requests in a day."""
    tokens_per_day: _Count | None = None
    """Tokens of questions and answers in a day."""
    cost_per_day: _Money | None = None
    """US dollars in a day; needs a known price."""


class PostCaps(StrictModel):
    """How many posts a feed may make; the rest waits, the oldest first."""

    per_run: _Count | None = 5
    """In one run."""
    per_hour: _Count | None = 10
    """In an hour."""
    per_day: _Count | None = 50
    """In a day."""


class FeedOptions(StrictModel):
    """The keys of one feed of a job."""

    url: _WebAddress
    """The address of the feed."""
    model: Name = DEFAULT
    """The model of the section that screens and summarises."""
    account: Name = DEFAULT
    """The account of the section that posts go to."""
    request: Name | None = None
    """The entry of `requests` that the feed is asked with."""
    language: Annotated[
        StrictStr, AfterValidator(_language), Expects("a language code such as en or ja")
    ] = "en"
    """The language of the summary and of the post."""
    screening: _Flag = True
    """Whether a model judges each article; off, every one is taken."""
    screening_prompt: _Instruction | None = None
    """What the model is to judge by; ours unless said."""
    summary_prompt: _Instruction | None = None
    """How the model is to summarise; ours unless said."""
    summary_characters: Annotated[
        StrictInt, Field(ge=20, le=10_000), Expects("a whole number from 20 to 10000")
    ] = 300
    """The length of a summary at most."""
    include: Patterns = Patterns()
    """Only entries that match."""
    exclude: Patterns = Patterns()
    """No entries that match."""
    max_age: PositiveSeconds | None = None
    """Older entries are left out."""
    backfill: Annotated[
        Literal["all"] | Annotated[StrictInt, Field(ge=0, le=100_000)],
        Expects("`all`, or a whole number from 0 to 100000"),
    ] = 0
    """How many of the newest entries of a first fetch are worked on."""
    attachments: Annotated[
        StrictInt, Field(ge=0, le=10), Expects("a whole number from 0 to 10")
    ] = 2
    """How many files of an article are read."""
    download_megabytes: Annotated[
        StrictInt, Field(ge=1, le=50), Expects("a whole number from 1 to 50")
    ] = 10
    """The size of a document at most."""
    fetch_every: PositiveSeconds | None = None
    """Not to ask more often than this; each run asks unless said."""
    full_fetch_every: PositiveSeconds = DAY_SECONDS
    """How often to ask for the whole, though the server says that nothing changed."""
    silent_after: PositiveSeconds | None = None
    """How long without news is silence; three times its longest gap, at least three days, unless said."""
    caps: PostCaps = PostCaps()
    """How many posts; the rest waits."""
    budget: Budget = Budget()
    """What may be spent on this feed."""
    hold: _Flag = False
    """Each post waits for a person."""
    on_change: OnChange = OnChange.IGNORE
    """What to do if a posted article changes."""
    visibility: Visibility = Visibility.UNLISTED
    """Who sees the post."""
    sensitive: _Flag = False
    """Whether the post is marked as sensitive."""
    content_warning: (
        Annotated[StrictStr, Field(min_length=1, max_length=200), Expects("text")] | None
    ) = None
    """The warning before the post."""
    template: Annotated[
        StrictStr,
        Field(min_length=1, max_length=2_000),
        AfterValidator(_template),
        Expects("text with {title}, {summary} and {url}"),
    ] = TEMPLATE
    """The text of the post."""


class FeedsOptions(StrictModel):
    """The keys of one job."""

    feeds: Annotated[
        dict[Name, FeedOptions],
        Field(min_length=1, max_length=FEEDS_MAX),
        Expects("a mapping of names to feeds"),
    ]
    """The feeds by name."""
    items_per_run: Annotated[
        StrictInt, Field(ge=0, le=100_000), Expects("a whole number from 0 to 100000")
    ] = 20
    """How many items a run works on."""
    retry_limit: Annotated[
        StrictInt, Field(ge=0, le=1_000), Expects("a whole number from 0 to 1000")
    ] = 5
    """An item that failed more often than this is given up."""
    retry_backoff: PositiveSeconds = 1_800.0
    """How long a deferred item waits the first time; twice as long each time after."""
    retry_backoff_cap: PositiveSeconds = DAY_SECONDS
    """How long a deferred item waits at most."""


class ModelSettings(StrictModel):
    """A model, by the name under which feeds use it."""

    provider: Provider
    """Who answers; `extractive` asks no model."""
    model: StrictStr | None = None
    """Its name at the provider; `gemini-flash-lite-latest` for Gemini unless said."""
    base_url: _WebAddress | None = None
    """Where the API is, for `openai` with its `/v1`; the provider's own unless said."""
    api_key: Annotated[SecretStr, Expects("a key, written as ${NAME}")] | None = None
    """The key of the API. A server of your own needs none."""
    timeout: PositiveSeconds = 60.0
    """For a whole answer."""
    output_tokens_max: Annotated[
        StrictInt, Field(ge=64, le=65_536), Expects("a whole number from 64 to 65536")
    ] = 2_048
    """How long an answer may be; what a model thinks counts."""
    dollars_per_million_input_tokens: _Money | None = None
    """The price of questions; the list price, if it is known, unless said."""
    dollars_per_million_output_tokens: _Money | None = None
    """The price of answers; the list price, if it is known, unless said."""
    budget: Budget = Budget()
    """What may be spent on this model."""


class AccountSettings(StrictModel):
    """Where posts go, by the name under which feeds use it: a Mastodon account (`base_url`, `access_token`), a
    webhook (`url`, `secret`) or a file of JSON lines (`path`)."""

    type: AccountType
    """What kind of account it is."""
    base_url: _WebAddress | None = None
    """Of `mastodon`: the address of the server."""
    access_token: Annotated[SecretStr, Expects("a token, written as ${NAME}")] | None = None
    """Of `mastodon`: a token with `read:accounts`, `read:statuses` and `write:statuses`."""
    url: _WebAddress | None = None
    """Of `webhook`: where posts are sent."""
    secret: Annotated[SecretStr, Expects("a secret, written as ${NAME}")] | None = None
    """Of `webhook`: what they are signed with."""
    is_idempotent: _Flag = Field(default=False, alias="idempotent")
    """Of `webhook`: whether the receiver takes a post once though it is sent twice."""
    path: StrictStr | None = None
    """Of `file`: the file, relative to the workspace."""
    timeout: PositiveSeconds = 30.0
    """For one request."""
    settling_time: PositiveSeconds = 60.0
    """How long after a post without an answer it is looked for again. The next looks wait 5, 15 and 60 times as long;
    the post is sent again after two that did not find it."""


class RequestSettings(StrictModel):
    """How a feed and its pages are asked for. Values may be secrets, written as ${NAME}."""

    user_agent: StrictStr | None = None
    """The User-Agent to send."""
    headers: dict[Name, SecretStr] = Field(default_factory=dict)
    """Headers to send, to the origin of the feed only."""
    cookies: dict[Name, SecretStr] = Field(default_factory=dict)
    """Cookies to send, to the origin of the feed only."""


class FeedsSection(StrictModel):
    """What all feeds jobs of an installation share."""

    models: dict[Name, ModelSettings] = Field(
        default_factory=lambda: {DEFAULT: ModelSettings(provider=Provider.EXTRACTIVE)}
    )
    """Models by name. Without any, the default one is extractive: no key is needed to try a feed."""

    accounts: dict[Name, AccountSettings] = Field(default_factory=dict)
    """Where posts go, by name; nothing is posted without one."""
    requests: dict[Name, RequestSettings] = Field(default_factory=dict)
    """Headers, cookies and User-Agent, by name."""
    budget: Budget = Budget()
    """What may be spent on all feeds together."""
    budget_zone: Zone = BUDGET_ZONE
    """The zone whose midnight renews the budgets."""
    private_hosts: Annotated[
        list[StrictStr], Expects("a list of host names or addresses that may be private")
    ] = Field(default_factory=list)
    """Hosts that may have a private address."""
    request_timeout: PositiveSeconds = 60.0
    """For one download."""
    concurrency: Annotated[int, Field(ge=1, le=256), Expects("a whole number from 1 to 256")] = 16
    """How many feeds are asked at the same time."""


KIND = JobKind(
    name="feeds",
    options_model=FeedsOptions,
    section_model=FeedsSection,
    questions=(
        JobQuestion(
            key=("feeds", JOB_NAME, "url"), text="Address of the feed (http:// or https://)"
        ),
    ),
    usual_schedule="every 15m",
    starter_variables=". You can choose these two names: tsuzuki.yaml refers to them as "
    "${GEMINI_API_KEY} and ${MASTODON_TOKEN}.\n#GEMINI_API_KEY=\n#MASTODON_TOKEN=\n",
    starter_job="news:\n  type: feeds                        # posts each new article once\n  "
    "schedule: {every: 15m}\n  feeds:\n    town: {url: "
    '"https://example.org/feed.xml"}\n',
)
