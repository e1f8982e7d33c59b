"""Collectors: work that continues where it stopped, one folder each, all of one shape.

    __init__.py   what it is: its kind of job, its tables, its handler (a `Collector`)
    options.py    the keys of its jobs, and its section of an installation
    tables.py     what it stores; `versions/` are the migrations
    queries/      the statements over its tables, one function each
    source*.py    talks to the outside and parses what comes back, within limits
    collect.py    the handler; beside it, what continues one thing page by page (`search`, `branch`)
    service       its use-cases, for the faces

`kit/` has what more than one of them needs, and knows none of them: HTTP client, errors, retry-after,
redaction, SMTP, prefetch, host pool with rate gate, outbox, claims, upsert, follow-up runs.

A page's rows, its cursor and its progress are committed in one transaction of the run
(`RunContext.transaction`), so after any stop the next run continues exactly there. A collector never
imports another one. `wiring` names each of them once. `tests/collectors/conformance` holds all of them to
the same rules.
"""
