"""The command line: what a person typed becomes a call of `services`, the answer becomes text.

`root` holds the table of commands and the way in and out; each noun has its own file. Data goes to
stdout through `output.emit`, talk goes to stderr, and every failure leaves through `failures`.
"""

from tsuzuki.cli.root import main, run_cli

__all__ = ["main", "run_cli"]
