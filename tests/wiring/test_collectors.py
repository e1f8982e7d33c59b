"""Which collectors there are: ours, and those of other distributions through an entry point."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.plug_in import OPTIONS, RECORD, REVISION, TABLES, install_plug_in
from support.web_client import Client
from support.web_process import serving
from support.workspace import Ended, Workspace
from tsuzuki.wiring.collectors import (
    collector_records,
    installed_collectors,
)

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
    return workspace.forked(*words, PYTHONPATH=str(site))


def test_ours_are_found_with_all_their_parts() -> None:
    installed = installed_collectors()
    assert installed.usable == collector_records().usable
    assert (installed.problems, dict(installed.distributions)) == ((), {})
    assert list(installed.kinds) == ["books", "codeindex", "commits", "feeds"]
    with_tables = [name for name, one in installed.usable.items() if one.component is not None]
    assert {n: c.name for n, c in installed.components.items()} == {n: n for n in with_tables}


@pytest.mark.parametrize("name", ["job", "doctor"])
def test_a_command_of_ours_is_not_replaced_by_one_of_a_collector(
    workspace: Workspace, site: Path, name: str
) -> None:
    install_plug_in(site, name=name)
    told = run(workspace, site, "job", "ls")
    assert "hello" in told.out
    assert f"warning: command '{name}' of the collector '{name}' is hidden" in told.err
    assert "Look at numbers." not in run(workspace, site, "--help").out


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
        ({"record": RECORD.replace('name="{name}"', 'name="other"')}, "names itself 'other'"),
        (
            {"options": OPTIONS.replace("up_to: int", "schedule: int")},
            "ValueError: keys of every job cannot be keys of a kind",
        ),
        ({"record": "import sys; sys.exit(1)"}, "SystemExit: 1"),
        ({"name": "timezone"}, "the name is reserved for a key of tsuzuki.yaml"),
        ({"name": "Count-Up"}, "a name may only contain lower-case letters, digits and _"),
        ({"revision": None}, "versions contains no migration"),
        (
            {"tables": TABLES.replace('name="{package}"', 'name="a-b"')},
            "its tables are named 'a-b', which is not a plain name",
        ),
    ],
)
def test_a_broken_plug_in_is_named_and_stops_only_what_needs_it(
    workspace: Workspace, site: Path, change: dict[str, Any], why: str
) -> None:
    install_plug_in(site, **change)
    name = change.get("name", "counting")
    workspace.append(f"  numbers: {{type: {name}, up_to: 4}}\n")
    looked = [
        run(workspace, site, *words) for words in (("job", "ls"), ("run", "ls"), ("worker", "ls"))
    ]
    assert "hello" in looked[0].out
    assert [ended.code for ended in looked] == [0] * 3
    started = run(workspace, site, "run-due", "--output", "json")
    assert started.code == 3
    assert "collector_refused" in started.err
    assert "unknown key" not in started.err
    for ended in looked:
        assert f"warning: collector '{name}' cannot be used: counting_plug_in: " in ended.err
        assert why in ended.err
    for ended in (*looked, started, run(workspace, site, name, "ls")):
        assert "Traceback" not in ended.err


@pytest.mark.parametrize("problem", ["OSError('no disk')", "SystemExit(4)"])
def test_a_plug_in_whose_tables_cannot_be_created_stops_only_what_needs_it(
    workspace: Workspace, site: Path, problem: str
) -> None:
    install_plug_in(site, revision=f"{REVISION}    raise {problem}")
    workspace.append(JOB)
    listed = run(workspace, site, "job", "ls")
    assert (listed.code, "warning" in listed.err) == (0, False)
    for words in (("run-due",), ("counting", "ls")):
        used = run(workspace, site, *words)
        assert used.code == 3
        assert "error[collector_refused]" in used.err
        assert problem.partition("(")[0] in used.err


def test_an_engine_starts_unless_an_enabled_job_is_of_a_refused_kind(
    workspace: Workspace, site: Path
) -> None:
    install_plug_in(site, record="import no_such_module")
    assert run(workspace, site, "run-due").code == 0
    workspace.append("  numbers: {type: counting, up_to: 4, enabled: false}\n")
    assert run(workspace, site, "run-due").code == 0
    workspace.append("  more: {type: counting}\n")
    started = run(workspace, site, "run-due")
    assert started.code == 3
    assert "collector 'counting' cannot be used" in started.err


def test_a_job_of_a_refused_kind_is_one_problem_of_the_file(
    workspace: Workspace, site: Path
) -> None:
    install_plug_in(site, record="import no_such_module")
    workspace.append("  numbers: {type: counting, up_to: 4}\ncounting: {speed: 3}\n")
    checked = run(workspace, site, "config", "check", "--output", "json")
    assert checked.code == 3
    error = json.loads(checked.err.splitlines()[-1])["error"]
    assert error["code"] == "collector_refused"
    assert (error["line"], error["column"]) == (4, 19)
    assert "problems" not in error


def test_a_stored_job_is_kept_while_its_kind_is_refused(workspace: Workspace, site: Path) -> None:
    install_plug_in(site)
    workspace.append(JOB)
    assert run(workspace, site, "job", "apply").code == 0
    (site / "counting_plug_in" / "__init__.py").write_text("import no_such_module\n")
    listed = run(workspace, site, "job", "ls", "--output", "json")
    assert {job["name"]: job["sync_state"] for job in listed.data} == {
        "hello": "applied",
        "numbers": "refused",
    }
    assert run(workspace, site, "job", "disable", "numbers").code == 3
    assert run(workspace, site, "job", "rm", "numbers", "--yes").code == 0
    assert "numbers" not in workspace.file.read_text()
    assert run(workspace, site, "run-due").code == 0


def test_a_revision_that_a_plug_in_does_not_know_is_reported_as_its_own(
    workspace: Workspace, site: Path
) -> None:
    install_plug_in(site)
    assert run(workspace, site, "counting", "ls").code == 0
    revision = site / "counting_plug_in" / "versions" / "0001_numbers.py"
    revision.write_text(revision.read_text().replace('"0001"', '"0000"'))
    listed = run(workspace, site, "job", "ls")
    assert listed.code == 0
    assert "which this version of counting_plug_in does not know" in listed.err
    used = run(workspace, site, "counting", "ls")
    assert used.code == 3
    assert "error[collector_refused]" in used.err


def test_a_handler_that_cannot_be_imported_stops_only_an_engine_that_needs_it(
    workspace: Workspace, site: Path
) -> None:
    install_plug_in(site, collect="raise OSError('no disk')\n")
    assert run(workspace, site, "run-due").code == 0
    workspace.append(JOB)
    started = run(workspace, site, "run-due")
    assert started.code == 3
    assert "error[collector_refused]" in started.err
    assert "OSError: no disk" in started.err


def test_a_service_that_cannot_be_built_is_named(workspace: Workspace, site: Path) -> None:
    install_plug_in(site, record=RECORD.replace(":Numbers", ":Letters"))
    used = run(workspace, site, "counting", "ls")
    assert used.code == 3
    assert "error[collector_refused]: collector 'counting' cannot be used: counting_plug_in" in (
        used.err
    )


def test_the_command_of_a_broken_plug_in_says_why(workspace: Workspace, site: Path) -> None:
    install_plug_in(site, record="import no_such_module")
    called = run(workspace, site, "counting", "ls")
    assert called.code == 3
    assert "error[collector_refused]: collector 'counting' cannot be used" in called.err
    assert "collector 'counting' cannot be used" in run(workspace, site, "--help").out


@pytest.mark.parametrize("name", ["books", "command"])
def test_a_name_that_is_taken_is_refused_and_ours_goes_on(
    workspace: Workspace, site: Path, name: str
) -> None:
    install_plug_in(site, name=name)
    listed = run(workspace, site, "books", "ls")
    assert listed.code == 0
    assert f"collector '{name}' cannot be used" in listed.err
    assert "the name is taken" in listed.err
    assert run(workspace, site, "run-due").code == 0


def test_a_table_of_another_component_is_refused(workspace: Workspace, site: Path) -> None:
    install_plug_in(site)
    tables = site / "counting_plug_in" / "tables.py"
    tables.write_text(
        tables.read_text().replace('"counting_plug_in_numbers"', '"tsuzuki_job_runs"')
    )
    listed = run(workspace, site, "job", "ls")
    assert listed.code == 0
    assert "its tables (tsuzuki_job_runs) belong to engine" in listed.err


VERIFY = """
from tsuzuki.model.verification import Comparison, FaultKind


def verify(context):
    comparison = Comparison("numbers")
    for number in range(3):
        comparison.compared += 1
        if number == 1:
            comparison.add(FaultKind.MISSING, f"number {{number}}")
        context.advance(1)
    yield comparison.result()


def broken(context):
    raise LookupError("no numbers")
    yield
"""


def test_a_collector_of_another_distribution_adds_a_part_of_verify(
    workspace: Workspace, site: Path
) -> None:
    record = RECORD.replace(
        "    commands=", '    verify="{package}.collect:verify",\n    commands='
    )
    install_plug_in(site, record=record, collect=VERIFY)
    assert run(workspace, site, "counting", "ls").code == 0  # what was never used is not verified
    ended = run(workspace, site, "verify", "counting", "--output", "json")
    assert ended.code == 1, ended.err
    (found,) = ended.data
    assert (found["part"], found["compared"], found["counts"]) == ("counting", 3, {"missing": 1})
    assert found["shown"][0]["named"] == [{"kind": "missing", "name": "number 1"}]


def test_a_part_of_verify_that_is_broken_is_a_problem_that_names_its_distribution(
    workspace: Workspace, site: Path
) -> None:
    record = RECORD.replace(
        "    commands=", '    verify="{package}.collect:broken",\n    commands='
    )
    install_plug_in(site, record=record, collect=VERIFY)
    assert run(workspace, site, "counting", "ls").code == 0  # what was never used is not verified
    ended = run(workspace, site, "verify", "ticks", "counting", "--output", "json")
    assert ended.code == 1, ended.err
    ticks, found = ended.data
    assert ticks["ok"]
    assert "counting_plug_in" in found["problem"]
    assert "LookupError: no numbers" in found["problem"]


@pytest.mark.slow
def test_a_server_leaves_out_pages_routes_and_topics_that_cannot_be_loaded(
    workspace: Workspace, site: Path
) -> None:
    broken = (
        'pages="no_such:PAGES",\n    routes=("no_such:router",),\n    topics="no_such:TOPICS",\n)'
    )
    install_plug_in(site, record=RECORD.rstrip().removesuffix(")") + "    " + broken)
    words = ("web", "--listen", "127.0.0.1:0")
    environ = {"PYTHONPATH": str(site)}
    token = run(workspace, site, "token", "create", "reader").out.strip()
    with serving(workspace.folder, *words, environ=environ) as (_, url):
        client = Client(url, token)
        assert client.get("jobs").status == 200
        assert client.get("books").status == 200
        assert client.get("stream?topics=no_such").code == "topic_unknown"
        assert b"no_such" not in client.get("/openapi.json").body
