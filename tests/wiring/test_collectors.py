"""Which collectors there are: ours, and those of other distributions through an entry point."""

from pathlib import Path

import pytest

from support.plug_in import RECORD, install_plug_in
from support.workspace import Ended, Workspace
from tsuzuki.wiring.collectors import OURS, collector_records, installed_collectors

JOB = "  numbers: {type: counting, up_to: 4}\n"


@pytest.fixture
def workspace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Workspace:
    folder = tmp_path / "workspace"
    folder.mkdir()
    workspace = Workspace(folder, capsys)
    workspace.file.write_text("version: 1\njobs:\n  hello: {command: [echo, hi]}\n")
    return workspace


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return tmp_path / "site"


def run(workspace: Workspace, site: Path, *words: str) -> Ended:
    return workspace.process(*words, PYTHONPATH=str(site))


def test_ours_are_found_with_all_their_parts() -> None:
    installed = installed_collectors()
    assert (
        list(installed.usable.values()) == list(OURS) == list(collector_records().usable.values())
    )
    assert installed.refused == {}
    assert list(installed.kinds) == [collector.name for collector in OURS]
    assert [component.name for component in installed.components] == ["engine", *installed.kinds]


def test_a_collector_of_another_distribution_brings_kind_tables_handler_service_and_command(
    workspace: Workspace, site: Path
) -> None:
    install_plug_in(site)
    workspace.append(JOB)
    assert "Look at numbers." in run(workspace, site, "--help").out
    assert run(workspace, site, "job", "apply").code == 0
    asked = run(workspace, site, "job", "run", "numbers", "--output", "json")
    done = run(workspace, site, "run-due", "--output", "json")
    assert (done.code, done.data) == (0, [{"state": "SUCCEEDED", "runs": 1}]), done.err
    shown = run(workspace, site, "run", "show", str(asked.data["run_id"]), "--output", "json")
    assert shown.data["result"] == {"counted": 4}
    listed = run(workspace, site, "counting", "ls", "--output", "json")
    assert listed.data == [{"number": n} for n in range(4)]
    upgraded = run(workspace, site, "db", "upgrade", "--output", "json").data
    assert upgraded[-1]["component"] == "counting_plug_in"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"record": "import no_such_module"}, "ModuleNotFoundError: No module named"),
        ({"record": "COLLECTOR = 7"}, "counting_plug_in:COLLECTOR is not a Collector"),
        ({"record": RECORD.replace('name="{name}"', 'name="other"')}, "calls itself 'other'"),
        (
            {"record": RECORD.replace("up_to: int", "schedule: int")},
            "ValueError: keys of every job cannot be keys of a kind",
        ),
    ],
)
def test_a_broken_plug_in_is_named_and_stops_only_what_needs_it(
    workspace: Workspace, site: Path, change: dict[str, str], why: str
) -> None:
    install_plug_in(site, **change)
    listed = run(workspace, site, "job", "ls")
    assert listed.code == 0
    assert "hello" in listed.out
    assert "warning: the collector 'counting' cannot be used: " in listed.err
    assert why in listed.err
    started = run(workspace, site, "run-due", "--output", "json")
    assert started.code == 3
    assert "collector_refused" in started.err
    for ended in (listed, started, run(workspace, site, "counting", "ls")):
        assert "Traceback" not in ended.err


def test_the_command_of_a_broken_plug_in_says_why(workspace: Workspace, site: Path) -> None:
    install_plug_in(site, record="import no_such_module")
    called = run(workspace, site, "counting", "ls")
    assert called.code == 3
    assert "error[collector_refused]: the collector 'counting' cannot be used" in called.err
    assert "the collector 'counting' cannot be used" in run(workspace, site, "--help").out


@pytest.mark.parametrize("name", ["books", "command"])
def test_a_name_that_is_taken_is_refused_and_ours_goes_on(
    workspace: Workspace, site: Path, name: str
) -> None:
    install_plug_in(site, name=name)
    listed = run(workspace, site, "books", "ls")
    assert listed.code == 0
    assert f"the collector '{name}' cannot be used" in listed.err
    assert "the name is taken" in listed.err


def test_a_table_of_another_component_is_refused(workspace: Workspace, site: Path) -> None:
    install_plug_in(site)
    tables = site / "counting_plug_in" / "tables.py"
    tables.write_text(tables.read_text().replace('"counting_plug_in_numbers"', '"job_runs"'))
    listed = run(workspace, site, "job", "ls")
    assert listed.code == 0
    assert "its tables (job_runs) are those of engine" in listed.err
