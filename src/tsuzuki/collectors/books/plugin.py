"""The record of the books collector."""

from tsuzuki.wiring.collector import Collector

COLLECTOR = Collector(
    name="books",
    summary="Collect books, list them, and email new ones.",
    kind="tsuzuki.collectors.books.options:KIND",
    component="tsuzuki.collectors.books.tables:COMPONENT",
    handler="tsuzuki.collectors.books.collect:collect",
    service="tsuzuki.collectors.books.service:Books",
    checks="tsuzuki.collectors.books.checks:checks",
    verify="tsuzuki.collectors.books.verify:verify",
    needs=("httpx2",),
    dry_run_arguments={"dry_run": True},
    audited=("mail",),
    commands={"books": "tsuzuki.collectors.books.commands.books:books"},
    cursors="tsuzuki.collectors.books.commands.service:books_service",
    routes=("tsuzuki.collectors.books.api:router",),
    pages="tsuzuki.collectors.books.pages:PAGES",
    stand_ins="tsuzuki.collectors.books.sandbox.stand_ins:STAND_INS",
    demo="tsuzuki.collectors.books.demo:DEMO",
    bench="bench.books",
)
