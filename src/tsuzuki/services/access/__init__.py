"""Access: users and their passwords, browser sessions, tokens of programs, and the setup code of the first admin.

Every call names the principal that makes it (`by`). A principal never grants more permissions than it has, and
never changes a user or token that has more. Every change is audited in its own transaction. Secrets are stored as
hashes, handed out once, and appear in no log, audit entry, error or `repr`.
"""
