"""Work that must continue: one folder per collector, all of one shape, each a guest of the engine.

    __init__.py   what it is: its kind of job, its tables, its handler (a `Collector`)
    tables.py     what it keeps, and the statements over it
    source*.py    talks to the outside and parses what comes back, within limits
    collect.py    decides what is asked next; the handler

A page's rows, its cursor and its progress are committed in one transaction of the run
(`RunContext.transaction`), so whatever stops a collection, the next run takes up exactly there. A
collector never imports another one. `wiring` names each of them once.
"""
