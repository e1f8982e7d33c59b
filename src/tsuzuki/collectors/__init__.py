"""Collectors: work that continues where it stopped. Everything about one is in its folder, and all have one shape.

    plugin.py     the record, a `Collector`: import strings of everything below
    options.py    the keys of its jobs and of its section, with the `JobKind`
    tables.py     what it stores; `versions/` are the migrations
    queries/      the statements over its tables, one function each
    source*.py    talks to the outside and parses what comes back, within limits
    collect.py    the handler; beside it, what continues one thing page by page (`search`, `branch`)
    service       its use cases: commands, routes, pages and tools act through it
    commands/     its commands
    api           its routes, `stream.py` its topics
    pages/        its screens, with `templates/`, `locale/` and `static/`
    tools/        its tools for coding agents
    checks.py     its checks for `tsuzuki doctor`
    sandbox/      stand-ins for the services it talks to
    demo          its part of `tsuzuki demo`

`kit/` has what at least two of them use. A page's rows, its cursor and its progress are committed in one transaction of
the run (`RunContext.transaction`), so after any stop the next run continues exactly there. A collector never imports
another one, and nothing below this package imports one: each is found by its entry point in `tsuzuki.collectors`, like
those of other distributions. `tests/collectors/conformance` holds all of them to the same rules.
"""
