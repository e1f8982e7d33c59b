"""`tsuzuki completion`: print a shell's completion script."""

import click
from click.shell_completion import get_completion_class

from tsuzuki.cli.commands import COMPLETE_VARIABLE, PROGRAM, Command
from tsuzuki.cli.terminal.output import write


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a shell's completion script.

    \b
    bash: tsuzuki completion bash > ~/.local/share/bash-completion/completions/tsuzuki
    zsh:  tsuzuki completion zsh > ~/.zfunc/_tsuzuki
    fish: tsuzuki completion fish > ~/.config/fish/completions/tsuzuki.fish
    """
    script_maker = get_completion_class(shell)
    if script_maker is None:
        raise click.UsageError(f"no completion script for {shell}")
    root = context.find_root().command
    write(script_maker(root, {}, PROGRAM, COMPLETE_VARIABLE).source())
