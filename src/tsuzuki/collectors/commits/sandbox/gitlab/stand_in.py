"""Starts the stand-in for GitLab in `tsuzuki sandbox`."""

import tempfile
from pathlib import Path

from tsuzuki.model.errors import NotFound
from tsuzuki.sandbox.stand_in_kind import StandInContext

from . import TOKEN, gitlab
from .demo import make_demo


def start(context: StandInContext) -> dict[str, str]:
    folder = _repositories(context)
    context.say(f"GitLab serves the repositories in {folder}.")
    per_minute = context.options["requests_per_minute"]
    server = context.serve(gitlab(folder, requests_per_minute=per_minute))
    return {"TSUZUKI_COMMITS_GITLAB_URL": server.url, "TSUZUKI_COMMITS_GITLAB_TOKEN": TOKEN}


def _repositories(context: StandInContext) -> Path:
    """The folder that was named, or a temporary one with the demo repositories."""
    chosen: Path | None = context.options["repositories"]
    if chosen is None:
        temporary = tempfile.TemporaryDirectory(prefix="tsuzuki-")
        folder = Path(context.running.enter_context(temporary))
        make_demo(folder)
        return folder
    folder = context.folder / chosen
    if not folder.is_dir():
        raise NotFound(f"there is no folder {folder}", hint="Name a folder of repositories.")
    return folder
