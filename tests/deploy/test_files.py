"""The files below `deploy/`: each is judged by the tool of its own field, and names only what the product has."""

import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest
from ruamel.yaml import YAML

from support.debian_packages import debian_program
from support.deploy_tools import ROOT, tool, tools
from tsuzuki.cli.root import ROOT as COMMANDS
from tsuzuki.engine.metrics import Metrics
from tsuzuki.model.states import RunState
from tsuzuki.services.read_limit import CHECK_SECONDS
from tsuzuki.web.stream.hub import HEARTBEAT_SECONDS
from tsuzuki.web.waiting import WAIT_SECONDS_MAX

DEPLOY = ROOT / "deploy"
COMPOSE = sorted(DEPLOY.glob("compose.*.yaml"))
UNITS = sorted(DEPLOY.glob("systemd/*.service"))
ALERTS = DEPLOY / "prometheus" / "alerts.yaml"
DASHBOARD = DEPLOY / "grafana" / "tsuzuki.json"
KUBERNETES_VERSION = "1.34"
PROMETHEUS_LABELS = {"instance", "job", "exported_job", "le"}
"""Labels that Prometheus adds."""

METRICS_OF = """
import json, promql_parser, sys

def selectors(node):
    if isinstance(node, promql_parser.VectorSelector):
        labels = [(m.name, m.value) for m in node.matchers.matchers]
        yield node.name, labels
    for name in ("expr", "lhs", "rhs", "selector", "vector_selector", "param"):
        child = getattr(node, name, None)
        if isinstance(child, promql_parser.Expr):
            yield from selectors(child)
    for child in getattr(node, "args", None) or []:
        yield from selectors(child)

print(json.dumps([list(selectors(promql_parser.parse(text))) for text in json.load(sys.stdin)]))
"""


def documents(path: Path) -> list[Any]:
    return list(YAML(typ="safe", pure=True).load_all(path.read_text(encoding="utf-8")))


def judged(*command: object, text: str | None = None) -> str:
    """The output of a program that must be content."""
    words = [str(word) for word in command]
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check_command(words: list[str]) -> None:
    """Parse the options of a command line of ours, without running it."""
    command: click.Command = COMMANDS
    context = click.Context(COMMANDS, info_name="tsuzuki", **COMMANDS.context_settings)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name, *words = words
        found = command.get_command(context, name)
        assert found is not None, name
        command, context = found, click.Context(found, info_name=name, parent=context)
    command.parse_args(context, [*words])


def test_hadolint_is_content_with_the_dockerfile() -> None:
    judged(tool("hadolint"), DEPLOY / "Dockerfile")


def test_the_image_runs_without_root_and_is_checked_on_livez() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    final = text.rsplit("\nFROM ", 1)[1]
    assert re.search(r"^USER (\d+)$", final, re.MULTILINE)
    assert "HEALTH_URL=http://127.0.0.1:8420/livez" in final
    entry = json.loads(re.findall(r"^ENTRYPOINT (.*)$", final, re.MULTILINE)[0])
    assert entry[-1] == "tsuzuki"
    check_command(json.loads(re.findall(r"^CMD (.*)$", final, re.MULTILINE)[0]))


def test_what_the_image_copies_is_not_ignored() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    kept = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    copied = [line.split()[1:-1] for line in text.splitlines() if re.match(r"COPY (?!--)", line)]
    for name in (one.rstrip("/") for line in copied for one in line):
        assert (ROOT / name).exists()
        assert f"!{name}" in kept


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.name)
def test_compose_files_have_the_published_schema_and_commands_of_ours(path: Path) -> None:
    judged(tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", path)
    (document,) = documents(path)
    for service in document["services"].values():
        if service["image"] == "tsuzuki":
            check_command(service["command"])
            assert service["stop_grace_period"] == "60s"
        for name in service.get("depends_on", {}):
            assert name in document["services"]
        for secret in service.get("secrets", []):
            assert secret in document["secrets"]


def test_the_cluster_of_compose_has_two_engines_and_a_web_page() -> None:
    (document,) = documents(DEPLOY / "compose.postgresql.yaml")
    assert set(document["services"]) == {"database", "redis", "engine", "web"}
    assert document["services"]["engine"]["deploy"]["replicas"] == 2


def test_kubernetes_manifests_have_the_published_schema_and_commands_of_ours() -> None:
    path = DEPLOY / "kubernetes" / "tsuzuki.yaml"
    judged(
        tool("kubernetes-validate"), "--strict", "--kubernetes-version", KUBERNETES_VERSION, path
    )
    for pod in pods():
        assert pod["securityContext"]["runAsNonRoot"]
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in pod["containers"]:
            check_command(container["args"])
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
            assert container["livenessProbe"]
    assert len(pods()) == 2


def pods() -> list[dict[str, Any]]:
    return [
        document["spec"]["template"]["spec"]
        for document in documents(DEPLOY / "kubernetes" / "tsuzuki.yaml")
        if document["kind"] == "Deployment"
    ]


def test_the_workspace_of_a_pod_can_be_written_to_and_has_the_file() -> None:
    """The folder of the file is the workspace: mirrors and posts to a file are written there."""
    image = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    (started_in,) = set(re.findall(r"^WORKDIR (/srv/.*)$", image, re.MULTILINE))
    for container in (container for pod in pods() for container in pod["containers"]):
        assert "TSUZUKI_CONFIG" not in {variable["name"] for variable in container["env"]}
        mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
        assert mounts[f"{started_in}/tsuzuki.yaml"]["subPath"] == "tsuzuki.yaml"
        assert not mounts[started_in].get("readOnly", False)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_is_content_with_the_units(path: Path, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    unit = tmp_path / path.name
    # It asks for programs and users that exist.
    text = re.sub(r"^User=.*$", "User=root", text, flags=re.MULTILINE)
    unit.write_text(re.sub(r"/srv/tsuzuki/.venv/bin/tsuzuki", "/bin/true", text), encoding="utf-8")
    judged("systemd-analyze", "verify", "--man=no", unit)


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_wait_for_ready_are_watched_and_start_a_command_of_ours(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert {"Type=notify", "WatchdogSec=60", "NoNewPrivileges=true"} <= set(text.splitlines())
    (started,) = re.findall(r"^ExecStart=\S+/tsuzuki (.*)$", text, re.MULTILINE)
    check_command(started.split())


@cache
def metrics() -> dict[str, set[str]]:
    """The series that a process has, each with its labels."""
    ours = Metrics()
    families = list(ours.registry.collect())
    names = {
        f"{family.name}{suffix}": family
        for family in families
        for suffix in {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(
            family.type, [""]
        )
    }
    counters = [value for value in vars(ours).values() if hasattr(value, "_labelnames")]
    labels = {counter._name: set(counter._labelnames) for counter in counters}
    return {name: labels.get(family.name, set()) for name, family in names.items()}


def check_queries(queries: list[str]) -> None:
    text = json.dumps([re.sub(r"\$__\w+", "5m", query) for query in queries])
    found = json.loads(judged(tools() / "bin" / "python", "-c", METRICS_OF, text=text))
    assert all(found)
    for query, selectors in zip(queries, found, strict=True):
        grouped = {
            name.strip() for by in re.findall(r"by \(([^)]*)\)", query) for name in by.split(",")
        }
        for name, matchers in selectors:
            if name == "up":
                continue
            assert name in metrics(), query
            own = metrics()[name] | PROMETHEUS_LABELS
            assert {label for label, _ in matchers if label != "__name__"} | grouped <= own, query
            states = [value for label, value in matchers if label == "state"]
            assert {one for value in states for one in value.split("|")} <= set(RunState), query


def rules() -> list[dict[str, Any]]:
    (document,) = documents(ALERTS)
    return [rule for group in document["groups"] for rule in group["rules"]]


def test_every_alert_asks_for_metrics_and_labels_that_exist() -> None:
    check_queries([rule["expr"] for rule in rules()])


def test_every_alert_is_explained() -> None:
    page = (ROOT / "docs" / "ops" / "operations.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(Tsuzuki\w+)`", page)) == {rule["alert"] for rule in rules()}


def test_every_panel_asks_for_metrics_and_labels_that_exist() -> None:
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    check_queries([target["expr"] for panel in panels for target in panel["targets"]])


def test_every_metric_is_on_the_dashboard() -> None:
    text = DASHBOARD.read_text(encoding="utf-8")
    missing = [name for name in metrics() if name not in text]
    assert [name for name in missing if not name.endswith(("_sum", "_count"))] == []


@pytest.mark.full
def test_promtool_is_content_with_the_alerts_and_their_tests(tmp_path: Path) -> None:
    promtool = debian_program("usr/bin/promtool", "prometheus")
    shutil.copytree(ALERTS.parent, tmp_path, dirs_exist_ok=True)
    judged(promtool.path, "check", "rules", tmp_path / ALERTS.name)
    judged(promtool.path, "test", "rules", tmp_path / "alerts.test.yaml")


def test_a_proxy_waits_longer_than_a_stream_is_silent_and_an_answer_takes() -> None:
    text = (DEPLOY / "nginx" / "tsuzuki.conf").read_text(encoding="utf-8")
    (seconds,) = re.findall(r"proxy_read_timeout (\d+)s;", text)
    assert int(seconds) > max(2 * HEARTBEAT_SECONDS, WAIT_SECONDS_MAX, CHECK_SECONDS)
    assert f"every {HEARTBEAT_SECONDS:.0f} seconds" in text
