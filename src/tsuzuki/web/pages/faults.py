"""Problems of a definition entered in a form, one sentence each."""

from tsuzuki.model.errors import ConfigurationError, TsuzukiError
from tsuzuki.web.answers import Model
from tsuzuki.web.pages.context import PageContext

UNPROCESSABLE = 422


class FormFault(Model):
    """What is wrong with what was typed."""

    message: str
    hint: str | None


def faults_of(context: PageContext, problem: TsuzukiError) -> list[FormFault]:
    """Without the secrets in them: what a definition names is expanded before it is checked."""
    found: tuple[TsuzukiError, ...] = getattr(problem, "problems", (problem,))
    return [
        FormFault(message=context.mask(_told(one)), hint=context.mask(one.hint)) for one in found
    ]


def status_of(context: PageContext, problem: TsuzukiError) -> int:
    """A fault of what was typed is one of the request, not of our file."""
    if isinstance(problem, ConfigurationError):
        return UNPROCESSABLE
    return context.problem(problem).status


def _told(problem: TsuzukiError) -> str:
    place = getattr(problem, "place", None)
    return f"{place}: {problem.message}" if place else problem.message
