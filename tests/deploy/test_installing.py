"""The wheel, installed from its file into empty environments: the core, each extra, and the steps of the Dockerfile."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.deploy_tools import INSTALL_SECONDS, ROOT, install, make_environment
from support.redis_server import free_port
from support.web_process import serving_program

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]
LOCK = ROOT / "requirements" / "runtime.txt"
WORKS = {
    "books": "import tsuzuki.collectors.books.collect",
    "codeindex": "import tsuzuki.collectors.codeindex.service",
    "commits": "import tsuzuki.collectors.commits.sources.gitlab",
    "feeds": "import tsuzuki.collectors.feeds.collect",
    "mcp": "import tsuzuki.mcp.server",
    "postgres": "import psycopg; psycopg.pq.version()",
    "redis": "import tsuzuki.engine.coordination.redis",
    "s3": "import obstore.store",
    "sandbox": "import tsuzuki.sandbox.server, aiosmtpd",
    "web": "import tsuzuki.web.server",
    "all": "import tsuzuki.web.server, tsuzuki.mcp.server",
}
"""What an extra is for, and what could not be imported without it."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [Path(sys.executable).with_name("hatchling"), "build", "-t", "wheel", "-d", folder]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def installed(folder: Path, wheel: Path, extra: str | None = None) -> Path:
    """The `bin` folder of an empty environment with the wheel and nothing else, at the locked versions."""
    make_environment(folder)
    name = f"{wheel}[{extra}]" if extra else str(wheel)
    install(folder, "--constraint", str(_versions(folder)), name)
    return folder / "bin"


def _versions(folder: Path) -> Path:
    """The lock without its hashes, which a wheel from a file does not have."""
    path = folder / "versions.txt"
    lines = LOCK.read_text(encoding="utf-8").splitlines()
    kept = [line.removesuffix("\\").rstrip() for line in lines if not line.startswith("    ")]
    path.write_text("\n".join(kept), encoding="utf-8")
    return path


def run(program: Path, *words: str, cwd: Path) -> str:
    environ = {"PATH": os.environ["PATH"], "HOME": str(cwd)}
    done = subprocess.run(
        [program, *words], cwd=cwd, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_core_alone_works_from_the_file(wheel: Path, tmp_path: Path) -> None:
    program = installed(tmp_path / "environment", wheel) / "tsuzuki"
    run(program, "init", cwd=tmp_path)
    run(program, "job", "run", "hello", cwd=tmp_path)
    assert "SUCCEEDED" in run(program, "run-due", "-o", "plain", cwd=tmp_path)


def test_every_extra_has_its_test() -> None:
    assert set(WORKS) == set(EXTRAS)


@pytest.mark.full
@pytest.mark.timeout(INSTALL_SECONDS)
@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_brings_what_it_needs_and_the_core_does_not(
    extra: str, wheel: Path, tmp_path: Path
) -> None:
    programs = installed(tmp_path / "environment", wheel, extra)
    run(programs / "python", "-c", WORKS[extra], cwd=tmp_path)
    run(programs / "tsuzuki", "init", cwd=tmp_path)


def steps_of(dockerfile: Path) -> Sequence[str]:
    """The commands of the build, up to the final image."""
    build = dockerfile.read_text(encoding="utf-8").split("\nFROM ")[1]
    found = re.findall(r"^RUN ((?:.*\\\n)*.*)$", build, re.MULTILINE)
    assert len(found) == 2
    return [step.replace("\\\n", "") for step in found]


@pytest.mark.full
@pytest.mark.timeout(3 * INSTALL_SECONDS)
def test_the_steps_of_the_dockerfile_install_a_server_that_answers(tmp_path: Path) -> None:
    source = tmp_path / "src"
    for name in ("requirements", "src"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for step in steps_of(ROOT / "deploy" / "Dockerfile"):
        command = step.replace("/opt/", f"{tmp_path}/opt/").replace("python ", f"{sys.executable} ")
        subprocess.run(["sh", "-euc", command], cwd=source, check=True)
    programs = tmp_path / "opt" / "tsuzuki" / "bin"
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    run(programs / "tsuzuki", "init", cwd=workspace)
    address = f"127.0.0.1:{free_port()}"
    command = [str(programs / "tsuzuki"), "up", "--listen", address]
    with serving_program(workspace, command):
        text = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
        (check,) = re.findall(r'CMD \["python", "-c", "(.*)"\]', text)
        code = f"import os; os.environ['HEALTH_URL'] = 'http://{address}/livez'; {check}"
        run(programs / "python", "-c", code, cwd=workspace)
