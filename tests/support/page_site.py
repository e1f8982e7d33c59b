"""A served workspace with something to see on each page: runs in every state, logs, failures, hostile names."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.web_client import Served, served_application
from tsuzuki.services.runs import Request

HOSTILE = "<img src=x onerror=alert(1)>\"'\u202e{{7*7}}"
FILE = """\
jobs:
  nightly-report:
    command: [sh, -c, "echo collecting; echo done"]
    schedule: every 1h
  hostile:
    command: [sh, {script}]
  always-fails:
    command: [sh, -c, "echo 'cannot open /srv/data/2026/a.csv' >&2; exit 1"]
  needs-gpu:
    command: ["true"]
    tags: [gpu]
"""
SCRIPT = """\
cat <<'END'
{text}
END
printf '\\033[31mred\\033[0m text\\n' >&2
exit 3
"""


@contextmanager
def page_site(folder: Path) -> Iterator[Served]:
    """Served to its owner, without sign-in. Its engine is stopped when all that can end has ended."""
    script = folder / "hostile.sh"
    script.write_text(SCRIPT.format(text=HOSTILE), encoding="utf-8")
    (folder / "tsuzuki.yaml").write_text(FILE.format(script=script), encoding="utf-8")
    with served_application(folder, fixed=False) as served:
        served.application.jobs.apply()
        _make_runs(served)
        yield served


def _make_runs(served: Served) -> None:
    application = served.application
    submit = application.runs.submit
    ended = [
        submit(Request(job=job, arguments=arguments)).run_id
        for job, arguments in (
            ("nightly-report", {"month": 11, "password": "hunter2-secret"}),
            ("nightly-report", {}),
            ("always-fails", {"path": HOSTILE}),
            ("hostile", {}),
        )
    ]
    application.local_engine.start()
    for run_id in ended:
        application.runs.wait(run_id, timeout_seconds=120)
    application.local_engine.stop()
    application.runs.cancel(submit(Request(job="nightly-report")).run_id)
    for job in ("needs-gpu", "nightly-report"):
        submit(Request(job=job, concurrency_key=HOSTILE))
