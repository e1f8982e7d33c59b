"""The example of a crontab: its 25 jobs are valid, and those that are tried do what they say."""

import os
import shutil
from pathlib import Path

import pytest

from support.workspace import PROGRAM, Workspace

EXAMPLE = Path(__file__).parents[2] / "examples" / "crontab"
PATH = os.pathsep.join([str(Path(PROGRAM).parent), os.environ["PATH"]])


@pytest.fixture
def crontab(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Workspace:
    folder = tmp_path / "crontab"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return Workspace(folder, capsys)


def ends_of(crontab: Workspace, *jobs: str) -> dict[str, str]:
    """Run the jobs, and what their events start; how the first run of each job ended."""
    crontab.ok("job", "apply")
    for job in jobs:
        crontab.ok("job", "run", job)
    crontab.process("run-due", PATH=PATH)
    runs = crontab.data("run", "ls", "--limit", "100")
    return {run["job_name"]: run["state"] for run in runs}


def test_its_25_jobs_are_valid_and_each_has_a_description(crontab: Workspace) -> None:
    assert crontab.data("config", "check")["jobs"] == 25
    jobs = crontab.data("job", "ls")
    assert len(jobs) == 25
    assert all(job["description"] for job in jobs)


def test_every_script_of_it_exists(crontab: Workspace) -> None:
    for job in crontab.data("job", "ls"):
        command = job["options"].get("argv", [])
        folder = crontab.folder / (job["options"].get("cwd") or ".")
        assert all((folder / word).is_file() for word in command if "scripts/" in word)


def test_orders_are_loaded_and_then_reported(crontab: Workspace) -> None:
    ends = ends_of(crontab, "load-orders", "customer-statements", "db-backup")
    assert {ends[name] for name in ("load-orders", "db-backup")} == {"SUCCEEDED"}
    assert len([*(crontab.folder / "var" / "backups").iterdir()]) == 1
    assert ends_of(crontab, "nightly-report")["nightly-report"] == "SUCCEEDED"
    report = crontab.data("run", "ls", "--job", "nightly-report")[0]
    assert report["result"] == {"days": 1, "customers": 3}


def test_each_step_of_the_stock_starts_the_next(crontab: Workspace) -> None:
    ends = ends_of(crontab, "pull-stock")
    assert ends == {"pull-stock": "SUCCEEDED"} | dict.fromkeys(
        ("merge-stock", "publish-stock"), "SUCCEEDED"
    )
    published = (crontab.folder / "var" / "stock" / "published.csv").read_text()
    assert published.splitlines() == ["bolt,12", "bolt,40", "lamp,7", "rope,3"]


def test_unlike_failures_are_listed_apart_and_a_model_waits_for_its_machine(
    crontab: Workspace,
) -> None:
    ends = ends_of(crontab, "sync-billing", "check-certificates", "train-model")
    assert ends["train-model"] == "PENDING"
    groups = {group["signature"] for group in crontab.data("run", "failures", "ls")}
    assert groups == {
        "ConnectionError: billing.example refused the connection",
        "RuntimeError: the certificate of mail.example expires in <n> days",
    }
