"""A program beside the worker that starts its commands, and sees to it that nothing of them stays.

It runs once per worker, as a package of its own with the standard library alone; so its modules name
each other relatively. For each command it forks a supervisor: the fork of a small process with one
thread costs a fraction of a new interpreter.

A supervisor is the parent of its command and, as a "subreaper", inherits every descendant that loses
its own: background jobs, double forks, sessions of their own. So the kernel keeps the account of what
belongs to a run, and "no child left" means that nothing is left. It ends everything

* when the worker is gone, however that happened: its process is watched, and so is the line to it;
* when the command's main process has ended, whose exit code stands;
* when told to: `TERM` asks all of the command to end, `KILL` does not ask.

A number is signalled only while it cannot belong to anybody else: our own children and their groups
before they are reaped, others through a handle. If a supervisor is itself killed, what it watched
over falls to the program it was forked from, which kills it.
"""

TERM, KILL = b"T", b"K"
"""The words that a supervisor understands."""
