"""The questions of `tsuzuki job add` in a terminal: name, what to run, the keys of the job type, and the schedule.

After an invalid answer, only that question is repeated. Without a terminal, nothing is asked.
"""

import json
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.job.options import JobChanges, KeyPath
from tsuzuki.cli.terminal.output import is_terminal, say
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.model.schedule import parse_schedule

if TYPE_CHECKING:
    from tsuzuki.services.jobs import Jobs

BY_HAND = "none"
WITH_AN_OPTION = (("type",), ("schedule",), ("description",))


def can_ask() -> bool:
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


class JobQuestions:
    """Asks for what `changes` do not say."""

    def __init__(self, invocation: Invocation, jobs: "Jobs", changes: JobChanges) -> None:
        self._invocation = invocation
        self._jobs = jobs
        self._kinds = jobs.kinds_to_add()
        self._removals = changes.removals
        self._values: dict[KeyPath, Any] = dict(changes.values)
        self._has_asked = False

    def ask(self, name: str | None) -> tuple[str, JobChanges]:
        """The name and the changes, complete."""
        name = name or self._ask_name()
        is_what_to_run_said = JobChanges(values=self._values).say_what_to_run
        if not is_what_to_run_said:
            self._ask_what_to_run(name)
        kind = self._kinds.get(str(self._values.get(("type",))))
        if kind is not None:
            for question in kind.questions:
                key = question.key_for(name)
                if not self._is_said(key[0]):
                    self._ask_key(name, key, question)
        has_trigger = self._is_said("schedule") or self._is_said("on_event")
        if not has_trigger and (kind is not None or not is_what_to_run_said):
            self._ask_when(kind.usual_schedule if kind is not None else BY_HAND)
        if self._has_asked:
            words = ["tsuzuki", "job", "add", name, *_options(self._values)]
            say(self._invocation, f"The same without questions: {shlex.join(words)}")
        return name, JobChanges(values=self._values, removals=self._removals)

    def _is_said(self, key: str) -> bool:
        return any(path[0] == key for path in self._values)

    def _ask_name(self) -> str:
        taken = {*self._jobs.names()}

        def problem(name: str) -> str | None:
            if name in taken:
                return f"a job named {name} already exists"
            return _words(self._jobs.problem_at(name, {"command": "true"}, ()))

        return self._prompt("Job name", problem)

    def _ask_what_to_run(self, name: str) -> None:
        kinds = ", ".join(sorted(self._kinds))

        def problem(answer: str) -> str | None:
            if answer in self._kinds:
                return None
            return _words(self._jobs.problem_at(name, {"command": answer}, ("command",)))

        answer = self._prompt(f"What to run (a command, or one of {kinds})", problem)
        self._values["type" if answer in self._kinds else "command",] = answer

    def _ask_key(self, name: str, key: KeyPath, question: Any) -> None:
        def problem(answer: str) -> str | None:
            if not answer:
                return None
            values = {**self._values, key: question.value_of(answer)}
            return _words(self._jobs.problem_at(name, values, key))

        answer = self._prompt(question.text, problem, default=None if question.required else "")
        if answer:
            self._values[key] = question.value_of(answer)

    def _ask_when(self, usual: str) -> None:
        def problem(answer: str) -> str | None:
            try:
                if answer != BY_HAND:
                    parse_schedule(answer)
            except TsuzukiError as error:
                return _words(error)
            return None

        answer = self._prompt(
            f"Schedule, such as every 1h or daily at 07:00 ({BY_HAND}: only by hand)",
            problem,
            usual,
        )
        if answer != BY_HAND:
            self._values["schedule",] = answer

    def _prompt(
        self, text: str, problem: Callable[[str], str | None], default: str | None = None
    ) -> str:
        self._has_asked = True
        while True:
            answer: str = click.prompt(
                text, default=default, show_default=bool(default), err=True
            ).strip()
            wrong = problem(answer)
            if wrong is None:
                return answer
            say(replace(self._invocation, quiet=False), f"  {wrong}")


def _options(values: Mapping[KeyPath, Any]) -> list[str]:
    """The options that say the same."""
    words: list[str] = []
    for path, value in values.items():
        if path in WITH_AN_OPTION:
            words += [f"--{path[0]}", str(value)]
        else:
            words += ["--set", f"{'.'.join(path)}={json.dumps(value, ensure_ascii=False)}"]
    return words


def _words(problem: TsuzukiError | None) -> str | None:
    """What is wrong and what to do, in one line."""
    if problem is None:
        return None
    return f"{problem.message}. {problem.hint or ''}".strip()
