"""The command line interface: translates commands into calls of `services` and their results into text.

`root` has the table of commands and the entry point; each command group has its own module. Data is printed to
stdout by `output.emit`, messages go to stderr, and every failure leaves through `errors`.
"""

from tsuzuki.cli.root import main, run_cli

__all__ = ["main", "run_cli"]
