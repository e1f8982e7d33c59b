"""Isolated functions of a program: which ones can be, and the library inside the process that executes them."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tsuzuki import Tsuzuki
from tsuzuki.model.errors import TsuzukiError, UsageError

TIMEOUT_SECONDS = 60.0


@pytest.fixture
def app(database_url: str, tmp_path: Path) -> Iterator[Tsuzuki]:
    with Tsuzuki(database_url, environ={}, cwd=tmp_path) as app:
        yield app


def pid() -> int:
    return os.getpid()


def test_a_function_is_executed_in_another_process_if_its_job_says_so(app: Tsuzuki) -> None:
    app.job("inside")(pid)
    app.define("outside", python=f"{__name__}:pid", isolation="process")
    with app.running():
        inside, outside = (
            app.submit(name).result(timeout_seconds=TIMEOUT_SECONDS)
            for name in ("inside", "outside")
        )
    assert inside == os.getpid()
    assert outside != os.getpid()


def of_module(module: str) -> object:
    def function() -> None: ...

    function.__module__, function.__qualname__ = module, "function"
    return function


@pytest.mark.parametrize("function", [of_module("__main__"), of_module("made_up_by_a_test")])
def test_a_function_that_no_other_process_can_import_is_refused(
    app: Tsuzuki, function: object
) -> None:
    with pytest.raises(UsageError) as refused:
        app.job(isolation="process")(function)  # type: ignore[type-var] -- it is one
    assert refused.value.specific_code == "not_isolable"
    assert "isolation: thread" in (refused.value.hint or "")


def test_a_lambda_and_a_function_inside_a_function_are_refused(app: Tsuzuki) -> None:
    def inner() -> None: ...

    for function in (inner, lambda: None):
        with pytest.raises(UsageError):
            app.job("job", isolation="process")(function)


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ({"python": "__main__:f", "isolation": "process"}, "not_isolable"),
        ({"python": "work:f", "memory": "512M"}, "not_isolated"),
        ({"python": "work:f", "isolation": "thread", "memory": "512M"}, "not_isolated"),
        ({"python": "work:f", "isolation": "process", "memory": "1K"}, "configuration"),
        ({"python": "work:f", "isolation": "process", "memory": "lots"}, "configuration"),
        ({"python": "work:f", "isolation": "jail"}, "configuration"),
        ({"command": "true", "isolation": "process"}, "unknown_key"),
    ],
)
def test_a_definition_that_means_nothing_is_refused(
    app: Tsuzuki, keys: dict[str, str], code: str
) -> None:
    with pytest.raises(TsuzukiError) as refused:
        app.define("job", **keys)
    assert refused.value.specific_code == code


PROGRAM = """
    import os
    from tsuzuki import Tsuzuki

    app = Tsuzuki(os.environ["WORK_URL"])

    @app.job(isolation="process")
    def is_open():
        return app._opened is not None

    @app.job(isolation="process")
    def submits():
        return app.submit("is_open", idempotency_key="by a function").id

    @app.job(isolation="process")
    def starts_an_engine():
        with app.running():
            pass
"""

MAIN = """
    from program import app

    def main():
        with app.running():
            print(app.submit("is_open").result(timeout_seconds=60))
            submitted = app.submit("submits").result(timeout_seconds=60)
            print(submitted == app.submit("is_open", idempotency_key="by a function").id)
            run = app.submit("starts_an_engine").wait(timeout_seconds=60)
            print(run.error.partition(":")[0])

    if __name__ == "__main__":
        main()
"""


def test_the_module_of_a_program_opens_nothing_in_the_process_and_starts_no_engine(
    tmp_path: Path,
) -> None:
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    (tmp_path / "main.py").write_text(textwrap.dedent(MAIN))
    done = subprocess.run(
        [sys.executable, "main.py"],
        env={**os.environ, "WORK_URL": f"sqlite:///{tmp_path}/work.db"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.splitlines() == ["False", "True", "isolated_engine"], done.stderr
