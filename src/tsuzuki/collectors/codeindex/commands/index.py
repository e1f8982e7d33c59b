"""`tsuzuki index`: index and search the source code of a tree, without a workspace or engine."""

import click

from tsuzuki.cli.commands import Group
from tsuzuki.collectors.codeindex.commands.answers import outline, references, search
from tsuzuki.collectors.codeindex.commands.build import build, status
from tsuzuki.collectors.codeindex.commands.files import ls, rm
from tsuzuki.collectors.codeindex.commands.source import code_map, read
from tsuzuki.collectors.codeindex.commands.watch import watch


@click.group(cls=Group)
def index() -> None:
    """Index the source code of a tree and search it.

    Works in any folder, without a workspace. PATH defaults to the git repository around the current folder.

    \b
    tsuzuki index build
    tsuzuki index search parse_config
    tsuzuki index read Server/start
    """


for command in (build, status, watch, search, read, references, outline, code_map, ls, rm):
    index.add_command(command)
