"""The line of a program's error output that names the cause, for the languages people write jobs in."""

import pytest

from tsuzuki.model.error_line import TRAILING_MAX, error_line

PYTHON = """\
loading customers
Traceback (most recent call last):
  File "/srv/jobs/sync.py", line 12, in <module>
    main()
    ~~~~^^
  File "/srv/jobs/sync.py", line 8, in main
    return row["customer_id"]
           ~~~^^^^^^^^^^^^^^^
KeyError: 'customer_id'
"""
CHAINED = f"""\
{PYTHON}
During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/jobs/sync.py", line 20, in <module>
    raise Refused("no")
jobs.errors.Refused: no
details: none
"""
NODE = """\
/srv/jobs/sync.js:3
  throw new TypeError("x is not a function");
  ^

TypeError: x is not a function
    at main (/srv/jobs/sync.js:3:9)
    at Module._compile (node:internal/modules/cjs/loader:1554:14)

Node.js v22.4.0
"""
NODE_MODULE = """\
node:internal/modules/cjs/loader:1228
  throw err;
  ^

Error: Cannot find module 'left-pad'
Require stack:
- /srv/jobs/sync.js
    at Module._resolveFilename (node:internal/modules/cjs/loader:1225:15) {
  code: 'MODULE_NOT_FOUND',
  requireStack: [ '/srv/jobs/sync.js' ]
}

Node.js v22.4.0
"""
JAVA = """\
Exception in thread "main" java.lang.IllegalStateException: cannot load
\tat com.example.Sync.main(Sync.java:14)
Caused by: java.sql.SQLException: connection refused
\tat com.example.Db.open(Db.java:31)
\t... 1 more
"""
JAVA_ALONE = """\
Exception in thread "main" java.lang.NullPointerException: name is null
\tat com.example.Sync.main(Sync.java:14)
"""
DOTNET = """\
Unhandled exception. System.InvalidOperationException: no rows
   at Sync.Main() in /srv/Sync.cs:line 4
"""
GO = """\
panic: runtime error: index out of range [5] with length 3

goroutine 1 [running]:
main.main()
\t/srv/jobs/sync.go:8 +0x1d
exit status 2
"""
RUBY = """\
sync.rb:4:in 'Object#load': undefined method 'name' for nil (NoMethodError)
\tfrom sync.rb:9:in '<main>'
"""
RUST = """\
thread 'main' panicked at src/main.rs:4:5:
index out of bounds: the len is 3 but the index is 5
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
"""
OLD_RUST = """\
thread 'main' panicked at 'no rows', src/main.rs:4:5
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
"""
SHELL = "copying\n./sync.sh: line 3: rsnc: command not found\n\n"
SYNTAX = '  File "sync.py", line 1\n    def (\n        ^\nSyntaxError: invalid syntax\n'
LOGGED = PYTHON + "skipped a row\n" * (TRAILING_MAX + 1) + "fatal: the disk is full\n"


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (PYTHON, "KeyError: 'customer_id'"),
        (CHAINED, "jobs.errors.Refused: no"),
        (PYTHON + "make: *** [Makefile:3: sync] Error 1\n", "KeyError: 'customer_id'"),
        (SYNTAX, "SyntaxError: invalid syntax"),
        (NODE, "TypeError: x is not a function"),
        (NODE_MODULE, "Error: Cannot find module 'left-pad'"),
        (JAVA, "java.sql.SQLException: connection refused"),
        (JAVA_ALONE, "java.lang.NullPointerException: name is null"),
        (DOTNET, "System.InvalidOperationException: no rows"),
        (GO, "panic: runtime error: index out of range [5] with length 3"),
        (RUBY, "undefined method 'name' for nil (NoMethodError)"),
        (RUST, "index out of bounds: the len is 3 but the index is 5"),
        (OLD_RUST, "no rows"),
        (SHELL, "./sync.sh: line 3: rsnc: command not found"),
        (LOGGED, "fatal: the disk is full"),
        ("exit status 2\n", "exit status 2"),
        ("", ""),
        (" \n\n", ""),
    ],
)
def test_the_line_that_names_the_cause_is_found(output: str, line: str) -> None:
    assert error_line(output) == line
