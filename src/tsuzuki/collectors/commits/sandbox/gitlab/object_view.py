"""A bare repository that has the objects of another and nothing else, as a server would have it.

A work tree's attributes and the settings of a repository change what `git log` counts; on a GitLab there
are none of them.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def object_view(objects: str, object_format: str) -> Iterator[dict[str, str]]:
    """What a git that looks through the view has in its environment."""
    with tempfile.TemporaryDirectory(prefix="sandbox-view-") as name:
        view = Path(name)
        (view / "refs").mkdir()
        (view / "HEAD").write_text("ref: refs/heads/none\n")
        settings = {"core": {"repositoryformatversion": "1", "bare": "true"}}
        settings["core"]["attributesFile"] = os.devnull
        settings["extensions"] = {"objectformat": object_format}
        lines = [
            line
            for section, values in settings.items()
            for line in (f"[{section}]", *(f"\t{key} = {text}" for key, text in values.items()))
        ]
        (view / "config").write_text("\n".join([*lines, ""]))
        yield {"GIT_ATTR_NOSYSTEM": "1", "GIT_DIR": name, "GIT_OBJECT_DIRECTORY": objects}
