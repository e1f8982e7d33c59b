"""Rows of the tables of access: such as can be true, and for each CHECK one that cannot."""

from datetime import timedelta
from typing import Any

from sqlalchemy import Table

from support.raw_statements import MOMENT
from tsuzuki.store.schema.access_tables import (
    api_tokens,
    owner_links,
    setup_codes,
    sign_in_attempts,
    user_sessions,
    users,
)

LATER = MOMENT + timedelta(days=1)
HASH = "a" * 64
MADE = {"created_at": MOMENT, "created_by": "cli:ada"}
USER = {
    **MADE,
    "name": "ada",
    "role": "admin",
    "password_hash": "$argon2id$",
    "password_changed_at": MOMENT,
}
TOKEN = {
    **MADE,
    "id": "0123456789",
    "name": "ci",
    "role": "viewer",
    "secret_hash": HASH,
    "expires_at": LATER,
}
SESSION = {
    "secret_hash": HASH,
    "user_id": 1,
    "created_at": MOMENT,
    "last_seen_at": MOMENT,
    "expires_at": LATER,
}
ATTEMPTS = {"key_hash": HASH, "attempts": 1, "window_ends_at": LATER}
SETUP_CODE = {**MADE, "id": 1, "code_hash": HASH, "expires_at": LATER}
OWNER_LINK = {**MADE, "link_hash": HASH, "expires_at": LATER}

IMPOSSIBLE: dict[str, list[tuple[Table, dict[str, Any]]]] = {
    "tsuzuki_ck_users_role": [(users, {**USER, "role": "owner"})],
    "tsuzuki_ck_users_name": [
        (users, {**USER, "name": ""}),
        (users, {**USER, "name": "x" * 101}),
        (users, {**USER, "name": "Ada"}),
    ],
    "tsuzuki_ck_users_password_hash": [(users, {**USER, "password_hash": ""})],
    "tsuzuki_ck_api_tokens_role": [(api_tokens, {**TOKEN, "role": "owner"})],
    "tsuzuki_ck_api_tokens_name": [
        (api_tokens, {**TOKEN, "name": ""}),
        (api_tokens, {**TOKEN, "name": "x" * 101}),
    ],
    "tsuzuki_ck_api_tokens_secret_hash": [(api_tokens, {**TOKEN, "secret_hash": "tsz_secret"})],
    "tsuzuki_ck_api_tokens_expires_at": [(api_tokens, {**TOKEN, "expires_at": MOMENT})],
    "tsuzuki_ck_api_tokens_revoked": [
        (api_tokens, {**TOKEN, "revoked_at": MOMENT}),
        (api_tokens, {**TOKEN, "revoked_by": "cli:ada"}),
    ],
    "tsuzuki_ck_user_sessions_secret_hash": [(user_sessions, {**SESSION, "secret_hash": "secret"})],
    "tsuzuki_ck_user_sessions_expires_at": [(user_sessions, {**SESSION, "expires_at": MOMENT})],
    "tsuzuki_ck_sign_in_attempts_key_hash": [(sign_in_attempts, {**ATTEMPTS, "key_hash": "ada"})],
    "tsuzuki_ck_sign_in_attempts_attempts": [(sign_in_attempts, {**ATTEMPTS, "attempts": 0})],
    "tsuzuki_ck_setup_codes_single": [(setup_codes, {**SETUP_CODE, "id": 2})],
    "tsuzuki_ck_setup_codes_code_hash": [(setup_codes, {**SETUP_CODE, "code_hash": "ABCDE"})],
    "tsuzuki_ck_owner_links_link_hash": [(owner_links, {**OWNER_LINK, "link_hash": "secret"})],
    "tsuzuki_ck_owner_links_session_hash": [
        (owner_links, {**OWNER_LINK, "opened_at": MOMENT, "session_hash": "owner.secret"})
    ],
    "tsuzuki_ck_owner_links_opened": [
        (owner_links, {**OWNER_LINK, "opened_at": MOMENT}),
        (owner_links, {**OWNER_LINK, "session_hash": HASH}),
    ],
}

POSSIBLE: list[tuple[Table, dict[str, Any]]] = [
    (users, USER),
    (api_tokens, TOKEN),
    (api_tokens, {**TOKEN, "id": "b", "name": "of ada", "user_id": 1}),
    (user_sessions, SESSION),
    (sign_in_attempts, ATTEMPTS),
    (setup_codes, SETUP_CODE),
    (owner_links, OWNER_LINK),
    (owner_links, {**OWNER_LINK, "link_hash": "b" * 64, "opened_at": MOMENT, "session_hash": HASH}),
]
