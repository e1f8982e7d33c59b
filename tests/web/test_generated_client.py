"""A client that openapi-python-client generates from the document lists and starts runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.web_client import Served

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"
PROGRAM = """\
import sys
from tsuzuki_client import AuthenticatedClient
from tsuzuki_client.api.runs import list_runs, start_run
from tsuzuki_client.models import StartRun, RunState

client = AuthenticatedClient(base_url=sys.argv[1], token="operator", raise_on_unexpected_status=True)
run = start_run.sync("hello", client=client, body=StartRun(priority=3), idempotency_key="generated")
page = list_runs.sync(client=client, job=["hello"], state=[RunState.PENDING])
print(run.priority, [one.id for one in page.items] == [run.id])
"""


@pytest.mark.full
def test_a_generated_client_lists_and_starts_runs(served: Served, tmp_path: Path) -> None:
    tool = Path(sys.executable).with_name("openapi-python-client")
    options = tmp_path / "options.yaml"
    options.write_text(
        "package_name_override: tsuzuki_client\npost_hooks: []\n",
        encoding="utf-8",
    )
    subprocess.run(
        [tool, "generate", "--path", DOCUMENT, "--config", options, "--meta", "none"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, served.server.url],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "3 True\n", done.stderr
