"""The page of the metrics, as `/metrics` and `--metrics-port` serve them."""

import ast
import inspect
from collections.abc import Iterator

from tools.reference.markdown import code, page, table
from tsuzuki.engine import metrics
from tsuzuki.engine.metrics import Metrics

_SUFFIXES = {"counter": "_total"}


def metrics_page() -> str:
    labels = dict(_labels())
    rows = [
        (
            code(family.name + _SUFFIXES.get(family.type, "")),
            family.type,
            " ".join(code(label) for label in labels.get(family.name, ())),
            family.documentation,
        )
        for family in Metrics().registry.collect()
    ]
    return page(
        "Metrics",
        "Each process counts for itself, from its start: add the processes up. `tsuzuki up` and `tsuzuki web` serve"
        " them at `/metrics`, `--metrics-port` on a port of its own.",
        table(("metric", "type", "labels", "meaning"), rows),
    )


def _labels() -> Iterator[tuple[str, list[str]]]:
    """Labels of each metric, read from the source because a family without values does not list them."""
    for node in ast.walk(ast.parse(inspect.getsource(metrics))):
        if isinstance(node, ast.Call) and len(node.args) > 2 and isinstance(node.args[2], ast.List):
            yield ast.literal_eval(node.args[0]), ast.literal_eval(node.args[2])
