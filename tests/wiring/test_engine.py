"""The engine of a process, as commands start it."""

import errno
import os
from pathlib import Path

import pytest

from tsuzuki.cli import run_cli


def refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What the start of an engine says, which must be refused."""
    assert run_cli(["init"], environ={}, cwd=folder) == 0
    capsys.readouterr()
    assert run_cli(["run-due"], environ={}, cwd=folder) == 3
    return capsys.readouterr().err


@pytest.mark.parametrize("missing", ["memfd_create", "pidfd_open"])
def test_an_engine_on_a_system_that_is_not_linux_is_refused_in_one_sentence(
    missing: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delattr(os, missing)
    told = refused(tmp_path, capsys)
    assert "error[system_unfit]: " in told
    assert "Use a Linux machine, a Linux container, or WSL." in told


def test_an_engine_on_a_linux_that_is_too_old_is_refused_in_the_same_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def pidfd_open(_pid: int) -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(os, "pidfd_open", pidfd_open)
    assert "Linux 5.3 or newer" in refused(tmp_path, capsys)
