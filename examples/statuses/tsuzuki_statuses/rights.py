"""Rights of the collector, each with the lowest role that includes it."""

from tsuzuki.model.access import CollectorRight, Role

STATUSES_READ = CollectorRight("statuses:read", Role.VIEWER)
STATUSES_FORGET = CollectorRight("statuses:forget", Role.ADMIN)
RIGHTS = (STATUSES_READ, STATUSES_FORGET)
