"""Options: the keys of a books job, and the section `books` of an installation."""

import re
from enum import StrEnum
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    Field,
    SecretStr,
    StrictInt,
    StrictStr,
)

from tsuzuki.collectors.books.query_set import BookSearch, normalised, search_text
from tsuzuki.collectors.books.quota import Allowance
from tsuzuki.config import Expects, InvalidValue, JobKind, VariableAlias
from tsuzuki.config.schema.field_types import PositiveSeconds, Zone
from tsuzuki.config.schema.strict_model import StrictModel
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.job_question import JobQuestion
from tsuzuki.outward.smtp_settings import SmtpSettings

BASE_URL = "https://www.googleapis.com/books/v1"
QUOTA_ZONE = "America/Los_Angeles"
"""Google's day ends at midnight Pacific time."""

SEARCH_CHARACTERS_MAX = 2_000
QUERIES_MAX = 100
PER_RUN_MAX = 10_000
MAILED_MAX = 200


class PrintType(StrEnum):
    """What the source should list."""

    ALL = "all"
    BOOKS = "books"
    MAGAZINES = "magazines"


class OrderBy(StrEnum):
    """In which order the source should list it."""

    RELEVANCE = "relevance"
    NEWEST = "newest"


def _searchable(queries: list[str]) -> list[str]:
    for index, query in enumerate(queries):
        if normalised([query]) == [""]:
            raise InvalidValue(
                "empty query",
                hint="Write a search term, such as: subject:astronomy",
                path=(index,),
            )
    length = len(search_text(queries))
    if length > SEARCH_CHARACTERS_MAX:
        raise InvalidValue(
            f"the queries have {length} characters together; a search can have "
            f"{SEARCH_CHARACTERS_MAX}",
            hint="Shorten them, or split them into several jobs.",
            code="search_too_long",
        )
    return queries


def _language(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", text):
        raise ValueError("not a language code")
    return text


_PerRun = Annotated[
    StrictInt,
    Field(ge=1, le=PER_RUN_MAX),
    Expects(f"a whole number from 1 to {PER_RUN_MAX}"),
]
_Mailed = Annotated[
    StrictInt, Field(ge=0, le=MAILED_MAX), Expects(f"a whole number from 0 to {MAILED_MAX}")
]


class BooksOptions(StrictModel):
    """The keys of one job."""

    queries: Annotated[
        list[StrictStr],
        Field(min_length=1, max_length=QUERIES_MAX),
        AfterValidator(_searchable),
        Expects(f"a list of 1 to {QUERIES_MAX} queries"),
    ]
    """Search terms; several are one search, joined with ` OR `."""
    print_type: PrintType | None = None
    """What to list; Google's default unless said."""
    lang_restrict: (
        Annotated[StrictStr, AfterValidator(_language), Expects("a language code such as en or ja")]
        | None
    ) = None
    """Only books in this language."""
    order_by: OrderBy | None = None
    """In which order to list; Google's default unless said."""
    max_per_run: _PerRun = 200
    """How many items a run collects."""
    mail_limit: _Mailed = 20
    """How many books a mail holds; 0 mails nothing."""
    fallback_limit: _Mailed = 0
    """How many books of other jobs are mailed when there is nothing new of its own."""
    recheck_exhausted_after: PositiveSeconds | None = None
    """When an exhausted search is started again; never unless said."""

    @property
    def search(self) -> BookSearch:
        return BookSearch(
            text=search_text(self.queries),
            print_type=self.print_type,
            lang_restrict=self.lang_restrict,
            order_by=self.order_by,
        )


class BooksSection(StrictModel):
    """What all books jobs of an installation share."""

    base_url: str = BASE_URL
    """Where the API is."""
    api_key: SecretStr | None = None
    """The key of the API."""
    daily_limit: Annotated[
        int,
        Field(ge=0, le=1_000_000),
        VariableAlias("DAILY_BOOKS_API_LIMIT"),
        Expects("a whole number from 0 to 1000000"),
    ] = 100
    """Calls a day, for all jobs together. Also read from `DAILY_BOOKS_API_LIMIT`."""
    quota_zone: Zone = QUOTA_ZONE
    """The zone whose midnight renews them."""
    mail: SmtpSettings = SmtpSettings()
    """The mail server and the addresses."""

    @property
    def allowance(self) -> Allowance:
        return Allowance(calls_per_day=self.daily_limit, zone=ZoneInfo(self.quota_zone))

    def required_key(self) -> str:
        key = self.api_key.get_secret_value().strip() if self.api_key else ""
        if not key:
            raise ConfigurationError(
                "no API key for Google Books",
                hint="Set TSUZUKI_BOOKS_API_KEY, or set TSUZUKI_BOOKS_API_KEY_FILE to a file that "
                "contains it.",
                code="api_key_missing",
            )
        return key


KIND = JobKind(
    name="books",
    options_model=BooksOptions,
    section_model=BooksSection,
    questions=(
        JobQuestion(
            key=("queries",),
            text="Search terms, such as subject:astronomy (separate several with commas)",
            is_list=True,
        ),
    ),
    starter_variables="""\

#TSUZUKI_BOOKS_API_KEY=
#TSUZUKI_BOOKS_DAILY_LIMIT=100
#TSUZUKI_BOOKS_MAIL_HOST=smtp.example.org
#TSUZUKI_BOOKS_MAIL_USER=tsuzuki
#TSUZUKI_BOOKS_MAIL_PASSWORD=
#TSUZUKI_BOOKS_MAIL_FROM=Tsuzuki <tsuzuki@example.org>
#TSUZUKI_BOOKS_MAIL_TO=reader@example.org
""",
    starter_job="new-books:\n  type: books                        # emails new books of a search; "
    'see .env.example\n  queries: ["subject:astronomy"]\n  schedule: {daily_at: '
    '"07:00"}\n',
)
