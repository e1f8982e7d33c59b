"""The words of the page for actions and object types of the audit log; a collector adds those of its own."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from tsuzuki.web.pages.extension import extensions
from tsuzuki.web.pages.language import message

OBJECT_TYPES = MappingProxyType(
    {
        "job": message("Job"),
        "run": message("Run"),
        "bulk": message("Bulk action"),
        "failure_group": message("Failure group"),
        "event": message("Event"),
        "worker": message("Worker"),
        "leader": message("Leader"),
        "setting": message("Setting"),
        "view": message("Saved view"),
        "user": message("User"),
        "token": message("Token"),
        "session": message("Session"),
        "setup_code": message("Setup code"),
        "owner_link": message("Sign-in link"),
    }
)

ACTIONS = MappingProxyType(
    {
        "job.add": message("Job created"),
        "job.change": message("Job changed"),
        "job.remove": message("Job deleted"),
        "run.start": message("Run started"),
        "run.cancel": message("Run canceled"),
        "run.retry": message("Run retried"),
        "bulk.preview": message("Bulk action previewed"),
        "bulk.confirm": message("Bulk action confirmed"),
        "bulk.stop": message("Bulk action stopped"),
        "failures.acknowledge": message("Failures acknowledged"),
        "event.emit": message("Event emitted"),
        "worker.drain": message("Worker drained"),
        "worker.detach": message("Worker detached"),
        "leader.step_down": message("Leader stepped down"),
        "setting.set": message("Setting changed"),
        "view.save": message("View saved"),
        "view.delete": message("View deleted"),
        "user.add": message("User added"),
        "user.remove": message("User removed"),
        "user.enable": message("User enabled"),
        "user.disable": message("User disabled"),
        "user.set_role": message("Role changed"),
        "user.set_password": message("Password changed"),
        "token.create": message("Token created"),
        "token.revoke": message("Token revoked"),
        "session.start": message("Signed in"),
        "session.refuse": message("Sign-in refused"),
        "session.end": message("Session ended"),
        "setup_code.create": message("Setup code created"),
        "owner_link.create": message("Sign-in link created"),
        "owner_link.open": message("Signed in with a link"),
        "owner_link.end": message("Signed out"),
    }
)


@cache
def audit_words() -> Mapping[str, str]:
    """By the code of an action or of an object type."""
    added = (one.audit_words for one in extensions())
    words: dict[str, str] = {**OBJECT_TYPES, **ACTIONS}
    for one in added:
        words |= one
    return words
