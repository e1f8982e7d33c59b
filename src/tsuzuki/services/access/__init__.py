"""Who may come in: users and their passwords, sessions of browsers, tokens of programs, the code of the first admin.

Each call names the principal that makes it (`by`). A principal never gives away more rights than it has, and never
changes a user or a token that has more. Every change is audited in its own transaction. Secrets are stored as hashes,
handed out once, and are in no log, audit entry, error or `repr`.
"""
