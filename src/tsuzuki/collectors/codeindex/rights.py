"""The rights to ask about code and to build indexes. A viewer has neither: an answer contains source code."""

from tsuzuki.model.access import CollectorRight, Role

CODE_READ = CollectorRight("code:read", Role.OPERATOR)
CODE_BUILD = CollectorRight("code:build", Role.OPERATOR)
RIGHTS = (CODE_READ, CODE_BUILD)
