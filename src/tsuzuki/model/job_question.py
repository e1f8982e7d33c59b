"""Questions: what a person is asked for at a terminal to make a job of some kind."""

from dataclasses import dataclass

JOB_NAME = "{job}"
"""In the path of a key: stands for the name of the job."""


@dataclass(frozen=True, kw_only=True)
class JobQuestion:
    """One key of a job, and how it is asked for. With `is_list` the answer may be several, with commas. An answer to
    a question that is not `required` may be empty: the key is left out then."""

    key: tuple[str, ...]
    text: str
    is_list: bool = False
    required: bool = True

    def key_for(self, job: str) -> tuple[str, ...]:
        return tuple(job if step == JOB_NAME else step for step in self.key)

    def value_of(self, answer: str) -> str | list[str]:
        if not self.is_list:
            return answer
        return [part.strip() for part in answer.split(",") if part.strip()]
