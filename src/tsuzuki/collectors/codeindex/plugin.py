"""The record of the code index. Its commands need no workspace; its service is for hosts that may ask about the trees
of jobs only."""

from tsuzuki.wiring.collector import Collector

COLLECTOR = Collector(
    name="codeindex",
    summary="Index the source code of a tree and search it.",
    kind="tsuzuki.collectors.codeindex.options:KIND",
    handler="tsuzuki.collectors.codeindex.collect:collect",
    service="tsuzuki.collectors.codeindex.service.job_trees:JobTrees",
    checks="tsuzuki.collectors.codeindex.checks:checks",
    verify="tsuzuki.collectors.codeindex.verify:verify",
    needs=("pathspec", "tree_sitter"),
    audited=("tree",),
    rights="tsuzuki.collectors.codeindex.rights:RIGHTS",
    commands={"index": "tsuzuki.collectors.codeindex.commands.index:index"},
    routes=(
        "tsuzuki.collectors.codeindex.api.index:router",
        "tsuzuki.collectors.codeindex.api.answers:router",
    ),
    pages="tsuzuki.collectors.codeindex.pages:PAGES",
    tools="tsuzuki.collectors.codeindex.tools.definitions:TOOLS",
    demo="tsuzuki.collectors.codeindex.demo:DEMO",
    bench="bench.codeindex",
)
