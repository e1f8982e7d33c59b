"""The schema as SQL: what the migrations of every component run, in the order in which they run."""

from functools import partial

from tsuzuki.store.schema.migrate import ENGINE
from tsuzuki.store.schema.sql_scripts import scripts
from tsuzuki.wiring.collectors import installed_collectors

_HEAD = """\
-- Made from the scripts of the migrations by `make reference`; edit those, not this file.
--
-- The tables of a collector are created when it is first used. `tsuzuki_schema_version_<component>` and
-- `tsuzuki_schema_compatibility` say which migrations a database has; Tsuzuki creates them.
"""


def _schema(dialect: str) -> str:
    found = installed_collectors()
    ours = [c for name, c in found.components.items() if name not in found.distributions]
    parts = [_HEAD]
    for component in (ENGINE, *ours):
        parts.append(f"\n-- {component.name} {'-' * (100 - len(component.name))}\n\n")
        texts = [path.read_text("utf-8").strip() for path in scripts(component.versions, dialect)]
        parts.append("\n\n".join(texts) + "\n")
    return "".join(parts)


SCHEMAS = {
    f"schema.{dialect}.sql": partial(_schema, dialect) for dialect in ("sqlite", "postgresql")
}
