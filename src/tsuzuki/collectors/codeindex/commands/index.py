"""`tsuzuki index`: the source code of a tree, indexed. No workspace and no engine is needed."""

import click

from tsuzuki.cli.commands import Group
from tsuzuki.collectors.codeindex.commands.answers import outline, references, search
from tsuzuki.collectors.codeindex.commands.build import build, status
from tsuzuki.collectors.codeindex.commands.files import ls, rm
from tsuzuki.collectors.codeindex.commands.source import code_map, read
from tsuzuki.collectors.codeindex.commands.watch import watch


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
