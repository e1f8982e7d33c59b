"""Where the configuration is: which file, and which database if the file does not decide. Nothing is parsed here, so
this loads fast.

Environment and current folder are handed in; nothing here looks at the process itself.
"""

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tsuzuki.config.environment.variables import ConfiguredValue, read_variable

FILE_NAME = "tsuzuki.yaml"
FILE_VARIABLE = "TSUZUKI_CONFIG"
DEFAULT_DATABASE = ConfiguredValue(text="sqlite:///tsuzuki.db", name="database_url")


def absolute_folder(cwd: Path) -> Path:
    return Path(os.path.abspath(cwd))  # noqa: PTH100 - resolves `..`, but no symbolic links


def find_file(*, file: Path | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """The configuration file: the one named by flag or variable, or else the nearest in `cwd` and
    the folders above. A named file is not checked here; reading it reports what is wrong."""
    named = file or environ.get(FILE_VARIABLE)
    if named:
        return Path(os.path.abspath(cwd / named))  # noqa: PTH100 - the workspace is where the link is
    candidates = (folder / FILE_NAME for folder in (cwd, *cwd.parents))
    return next(filter(_is_file, candidates), None)


def _is_file(path: Path) -> bool:
    with suppress(OSError):  # a folder above that this user may not enter
        return path.is_file()
    return False


def database_url_outside_file(
    flag: str | None, environ: Mapping[str, str], *, cwd: Path
) -> ConfiguredValue | None:
    """The database that a flag or a variable names: the file does not count then."""
    if flag is not None:
        return ConfiguredValue(text=flag, name="--database-url")
    return read_variable("TSUZUKI_DATABASE_URL", environ, cwd=cwd)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
