"""A tiny distribution with a collector in it, as `pip install` leaves it on `sys.path`."""

from pathlib import Path

RECORD = '''
"""A collector that counts."""

from tsuzuki.wiring.collector import Collector

COLLECTOR = Collector(
    name="{name}",
    summary="Look at numbers.",
    kind="{package}.options:KIND",
    component="{package}.tables:COMPONENT",
    handler="{package}.collect:count",
    service="{package}.tables:Numbers",
    commands={{"{name}": "{package}.commands:command"}},
)
'''

OPTIONS = """
from pydantic import BaseModel

from tsuzuki.config import JobKind


class Options(BaseModel):
    up_to: int = 3


KIND = JobKind(name="{name}", options_model=Options)
"""

COLLECT = """
from {package}.tables import insert


def count(context, run):
    for number in range(run.options["up_to"]):
        with run.transaction() as connection:
            insert(connection, number)
    return {{"counted": run.options["up_to"]}}
"""

TABLES = """
from pathlib import Path

from sqlalchemy import Column, Integer, MetaData, Table, select

from tsuzuki.store.schema.migrate import Component

metadata = MetaData()
numbers = Table("{package}_numbers", metadata, Column("number", Integer, primary_key=True))
COMPONENT = Component(
    name="{package}", metadata=metadata, versions=Path(__file__).parent / "versions"
)


def insert(connection, number):
    connection.execute(numbers.insert().values(number=number))


class Numbers:
    def __init__(self, context):
        self._database = context.database

    def find(self):
        with self._database.read() as connection:
            return list(connection.execute(select(numbers.c.number)).scalars())
"""

REVISION = '''
"""The table."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade():
    op.create_table("{package}_numbers", sa.Column("number", sa.Integer, primary_key=True))
'''

COMMANDS = '''
import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.commands import Group
from tsuzuki.cli.terminal.output import emit


@click.group("{name}", cls=Group)
def command():
    """Look at numbers."""


@command.command()
@click.pass_obj
def ls(invocation):
    """List them."""
    with open_application(invocation) as application:
        emit(invocation, [{{"number": n}} for n in application.service("{name}").find()])
'''


def install_plug_in(
    site: Path,
    *,
    name: str = "counting",
    package: str = "counting_plug_in",
    record: str = RECORD,
    options: str = OPTIONS,
    collect: str = COLLECT,
    tables: str = TABLES,
    revision: str | None = REVISION,
) -> None:
    """Write the distribution into a folder that is on `sys.path`."""
    folder = site / package
    folder.mkdir(parents=True)
    files = {
        "__init__.py": record,
        "options.py": options,
        "collect.py": collect,
        "tables.py": tables,
        "commands.py": COMMANDS,
    }
    if revision is not None:
        (folder / "versions").mkdir()
        files["versions/0001_numbers.py"] = revision
    for file, text in files.items():
        (folder / file).write_text(text.format(name=name, package=package), "utf-8")
    information = site / f"{package}-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(
        f"[tsuzuki.collectors]\n{name} = {package}:COLLECTOR\n"
    )
