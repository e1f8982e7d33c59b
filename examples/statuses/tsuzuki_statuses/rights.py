"""The rights of the collector. Each names the lowest role that has it."""

from tsuzuki.model.access import CollectorRight, Role

STATUSES_READ = CollectorRight("statuses:read", Role.VIEWER)
STATUSES_FORGET = CollectorRight("statuses:forget", Role.ADMIN)
RIGHTS = (STATUSES_READ, STATUSES_FORGET)
