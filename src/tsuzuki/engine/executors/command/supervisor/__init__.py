"""The supervisor server: a program beside the worker that starts its commands and leaves no process behind.

It runs once per worker, as a package of its own with the standard library alone; so its modules use relative
imports. It forks supervisors, as many as commands run at the same time. A supervisor runs one command after the
other, so that a command costs one fork, of a small process with one thread, and no new interpreter.

A supervisor is the parent of its command and, as a "subreaper", inherits every descendant that loses its
parent: background jobs, double forks, sessions of their own. So the kernel tracks which processes belong to a
run, and "no child left" means that no process is left. Only then does it take the next command. It ends all of them

* when the worker is gone, for any reason: its process is watched through a pidfd, and so is the control socket;
* when the deadline passes that the worker renews with each heartbeat: a worker that is paused does not, and
  another one may start the run soon after;
* when the command's main process has ended; its exit code is the result;
* when its processes have more resident memory than the worker allows;
* on request: `TERM` sends SIGTERM to the whole command, `KILL` sends SIGKILL.

A pid is signalled only while it cannot have been reused: our own children and their groups before they are
reaped, other processes through a pidfd. If a supervisor is itself killed, the kernel kills the command's process
group, and the server that the supervisor was forked from kills its other descendants. If the server is killed too,
those descendants live on, because no process is left that knows them. A server or supervisor that is stopped
(SIGSTOP) when its worker is killed is resumed, to end its processes.
"""

TERM, KILL = b"T", b"K"
"""The requests to stop a command. A request to start one carries descriptors."""

MEMORY = b"M"
"""The request to kill a command when its processes have more resident memory than the bytes that follow, as text; with
0 there is no limit."""

START = b"+"
"""The first byte of a request to start a command; its spec follows."""

INLINE_BYTES_MAX = 64 * 1024
"""A longer spec is in a file, whose descriptor is sent too."""

DESCRIPTORS_MAX = 4
"""Sent with a request to start a command: standard output, standard error, perhaps standard input and the spec."""
