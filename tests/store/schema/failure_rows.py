"""Rows of the tables of failures: such as can be true, and for each CHECK one that cannot."""

from typing import Any

from sqlalchemy import Table

from support.raw_statements import MOMENT
from tsuzuki.store.schema.history_tables import failure_groups

GROUP = {"id": "0123456789abcdef", "signature": "handler_failed: it broke"}
ACKNOWLEDGED = {
    "acknowledged_run_id": 1,
    "acknowledged_at": MOMENT,
    "acknowledged_by": "cli:ada",
}

IMPOSSIBLE: dict[str, list[tuple[Table, dict[str, Any]]]] = {
    "tsuzuki_ck_failure_groups_acknowledged": [
        (failure_groups, {**GROUP, **ACKNOWLEDGED, missing: None}) for missing in ACKNOWLEDGED
    ],
}
POSSIBLE: list[tuple[Table, dict[str, Any]]] = [
    (failure_groups, GROUP),
    (failure_groups, {**GROUP, **ACKNOWLEDGED, "id": "b"}),
]
