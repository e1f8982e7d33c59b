"""`/database/check`: check database integrity. Upgrades and backups are made on the server."""

from pydantic import Field

from tsuzuki.model.access import Right
from tsuzuki.services.read_limit import CHECK_SECONDS, limited_reads
from tsuzuki.web.answers import Model
from tsuzuki.web.context import Context
from tsuzuki.web.route import ApiRouter

router = ApiRouter("database")


class FindingOut(Model):
    """The result of one check."""

    subject: str
    ok: bool
    problem: str | None
    hint: str | None


class DatabaseCheck(Model):
    ok: bool = Field(description="True if no check found a problem.")
    findings: list[FindingOut]


@router.get("/database/check", right=Right.SETTINGS_READ)
def check_database(context: Context) -> DatabaseCheck:
    """Look whether the database is whole; nothing is changed. On a large one this takes a while."""
    with limited_reads(CHECK_SECONDS, hint="Run the check on the server: tsuzuki db check"):
        checked = context.application.maintenance.check()
    findings = [
        FindingOut(
            subject=found.subject,
            ok=found.is_ok,
            problem=context.mask(found.problem),
            hint=context.mask(found.hint),
        )
        for found in checked
    ]
    return DatabaseCheck(ok=all(found.ok for found in findings), findings=findings)
