"""The options of a code index job."""

from typing import Annotated

from pydantic import Field

from tsuzuki.collectors.codeindex.lsp.settings import LspOption
from tsuzuki.config import Expects, JobKind
from tsuzuki.config.schema.field_types import Text
from tsuzuki.config.schema.strict_model import StrictModel
from tsuzuki.model.job_question import JobQuestion


class CodeIndexOptions(StrictModel):
    """The keys of a job of this kind. A root that is not absolute is below the workspace."""

    roots: Annotated[list[Text], Expects("a list of folders")] = Field(min_length=1)
    """The folders to index, relative to the workspace."""
    lsp: LspOption = Field(default_factory=dict)
    """The command of the language server, by language; the parser is used unless said."""


KIND = JobKind(
    name="codeindex",
    options_model=CodeIndexOptions,
    questions=(
        JobQuestion(
            key=("roots",),
            text="Folder of the source code (separate several with commas)",
            is_list=True,
        ),
    ),
    usual_schedule="every 10m",
    starter_job="code:\n"
    "  type: codeindex                    # an index of source code: tsuzuki index --help\n"
    "  roots: [src]\n"
    "  schedule: {every: 5m}\n",
)
