"""Keys of a statuses job, and the shared section `statuses`."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.config import Expects, JobKind
from tsuzuki.model.job_question import JobQuestion


class Options(BaseModel):
    """Keys of one job."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    account: Annotated[
        str,
        Field(pattern=r"^\d+$"),
        Expects('the number of an account, in quotes: "109302436954721982"'),
    ]


class Section(BaseModel):
    """Section `statuses:` of the file. Each key can also be a variable, such as TSUZUKI_STATUSES_BASE_URL."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    base_url: str = "https://mastodon.social"
    page_size: Annotated[int, Field(ge=1, le=40), Expects("a whole number from 1 to 40")] = 40


KIND = JobKind(
    name="statuses",
    options_model=Options,
    section_model=Section,
    questions=(JobQuestion(key=("account",), text="Number of the account"),),
    usual_schedule="every 10m",
    starter_section="""\
statuses:
  base_url: https://mastodon.social
""",
    starter_job="""\
mastodon-news:
  type: statuses                     # collect the public statuses of an account
  account: "109302436954721982"
  schedule: {every: 10m}
""",
    starter_variables="\n#TSUZUKI_STATUSES_BASE_URL=https://mastodon.social\n",
)
