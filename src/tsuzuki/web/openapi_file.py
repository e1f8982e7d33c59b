"""Writes the OpenAPI document: `python -m tsuzuki.web.openapi_file docs/reference/openapi.json`."""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tsuzuki.model.access import OwnerMode
from tsuzuki.web.app import build_app
from tsuzuki.web.documents import openapi_of
from tsuzuki.web.security.access import AccessAuthenticator
from tsuzuki.wiring.application import opened


def write(target: Path) -> None:
    """The document depends on the code alone; the workspace is an empty one."""
    with TemporaryDirectory() as folder, opened(environ={}, cwd=Path(folder), migrate=False) as app:
        authenticator = AccessAuthenticator(app, owner=None, owner_mode=OwnerMode.LINK)
        served = build_app(app, authenticator, installation="")
        text = json.dumps(openapi_of(served), indent=1, ensure_ascii=False)
    target.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
