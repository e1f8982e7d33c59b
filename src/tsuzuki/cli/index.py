"""`tsuzuki index`: the source code of a tree, indexed. No workspace and no engine is needed."""

import click

from tsuzuki.cli.commands import Group
from tsuzuki.cli.index_answers import outline, references, search
from tsuzuki.cli.index_build import build, status
from tsuzuki.cli.index_files import ls, rm
from tsuzuki.cli.index_source import code_map, read
from tsuzuki.cli.index_watch import watch


@click.group(cls=Group)
def index() -> None:
    """Index the source code of a tree, and ask what is in it.

    Any folder will do: no workspace is needed. Without PATH it is the git repository around the current
    folder.

    \b
    tsuzuki index build
    tsuzuki index search parse_config
    tsuzuki index read Server/start
    """


for command in (build, status, watch, search, read, references, outline, code_map, ls, rm):
    index.add_command(command)
