"""The code of the product with one migration more, as a later version would have it."""

import compileall
import shutil
from pathlib import Path

import tsuzuki
from tsuzuki.store.schema.migrate import MIGRATIONS

SOURCE = Path(tsuzuki.__file__).parent
MIGRATION = '''"""A column that this version does not know."""

from tsuzuki.store.schema.sql_scripts import run_scripts

revision = "{revision}"
down_revision = "{before}"
expands = True


def upgrade() -> None:
    run_scripts(__file__)
'''
SCRIPT = "ALTER TABLE tsuzuki_job_runs ADD COLUMN of_a_later_version TEXT;\n"


class LaterVersion:
    """A copied source tree. It runs with the interpreter and the packages of today."""

    revision = "9999"

    def __init__(self, folder: Path, *, before: str) -> None:
        self._source = folder / "src"
        copy = self._source / "tsuzuki"
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        versions = copy / MIGRATIONS.relative_to(SOURCE) / "versions"
        migration = MIGRATION.format(revision=self.revision, before=before)
        (versions / f"{self.revision}_later.py").write_text(migration)
        for dialect in ("sqlite", "postgresql"):
            (versions / f"{self.revision}_later.{dialect}.sql").write_text(SCRIPT)
        # Once, and not while a test waits for a process.
        compileall.compile_dir(copy, quiet=2)

    @property
    def prefix(self) -> tuple[str, ...]:
        """Before a command: `tsuzuki` is then this version."""
        return ("env", f"PYTHONPATH={self._source}")
