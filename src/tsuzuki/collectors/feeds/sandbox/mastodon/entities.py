"""The JSON of the API: accounts, statuses, media, the instance."""

from collections.abc import Sequence
from typing import Any

from .records import Account, Status, UploadedMedia, Version
from .throttle import timestamp

VERSION = "4.5.0"
API_VERSION = 7
MEDIA_TYPES = (
    "image/jpeg image/png image/gif image/heic image/heif image/webp image/avif video/webm video/mp4 "
    "video/quicktime video/ogg audio/wave audio/ogg audio/mpeg audio/flac audio/aac audio/mp4"
).split()
MEDIA_ATTACHMENTS_MAX = 4
VIDEO_BYTES_MAX = 99 * 1024 * 1024


def account_entity(account: Account, statuses_count: int, base_url: str) -> dict[str, Any]:
    url = f"{base_url}/@{account.username}"
    missing = f"{base_url}/avatars/original/missing.png"
    entity = {
        "id": str(account.id),
        "username": account.username,
        "acct": account.username,
        "display_name": "" if account.suspended else account.username,
        "locked": False,
        "bot": True,
        "discoverable": False,
        "group": False,
        "created_at": timestamp(account.created_at),
        "note": "",
        "url": url,
        "uri": f"{base_url}/users/{account.username}",
        "avatar": missing,
        "avatar_static": missing,
        "header": missing,
        "header_static": missing,
        "followers_count": 0,
        "following_count": 0,
        "statuses_count": statuses_count,
        "emojis": [],
        "fields": [],
    }
    return {**entity, "suspended": True} if account.suspended else entity


def credentials(account: dict[str, Any]) -> dict[str, Any]:
    """The account with what only its owner sees."""
    source = {
        "privacy": "public",
        "sensitive": False,
        "language": None,
        "note": "",
        "fields": [],
        "follow_requests_count": 0,
    }
    return {**account, "source": source}


def status_entity(
    status: Status,
    *,
    account: dict[str, Any],
    media: Sequence[UploadedMedia],
    reblog: dict[str, Any] | None,
    replies: int,
    card: bool,
) -> dict[str, Any]:
    shown = status.shown
    url = f"{status.base_url}/@{status.account.username}/{status.id}"
    reply_to = str(status.in_reply_to_id) if status.in_reply_to_id else None
    return {
        "id": str(status.id),
        "created_at": timestamp(status.created_at),
        "in_reply_to_id": reply_to,
        "in_reply_to_account_id": account["id"] if reply_to else None,
        "sensitive": shown.sensitive,
        "spoiler_text": shown.spoiler_text,
        "visibility": status.visibility,
        "language": shown.language,
        "uri": f"{status.base_url}/users/{status.account.username}/statuses/{status.id}",
        "url": url,
        "replies_count": replies,
        "reblogs_count": 0,
        "favourites_count": 0,
        "edited_at": timestamp(status.edited_at) if status.edited_at else None,
        "favourited": False,
        "reblogged": False,
        "muted": False,
        "bookmarked": False,
        "content": status.content,
        "filtered": [],
        "reblog": reblog,
        "application": {"name": "Sandbox", "website": None},
        "account": account,
        "media_attachments": [media_entity(one, status.base_url) for one in media],
        "mentions": [_mention(name, status.base_url) for name in status.mentions],
        "tags": [
            {"name": name.lower(), "url": f"{status.base_url}/tags/{name.lower()}"}
            for name in status.hashtags
        ],
        "emojis": [],
        "card": _card(status.urls[0]) if card and status.urls else None,
        "poll": None,
    }


def version_entity(status: Status, version: Version, number: int) -> dict[str, Any]:
    """One entry of a status's history, without its account."""
    return {
        "content": Status(
            id=status.id,
            account=status.account,
            visibility=status.visibility,
            created_at=status.created_at,
            versions=[version],
            version_times=[status.version_times[number]],
            base_url=status.base_url,
        ).content,
        "spoiler_text": version.spoiler_text,
        "sensitive": version.sensitive,
        "created_at": timestamp(status.version_times[number]),
        "media_attachments": [],
        "emojis": [],
    }


def media_entity(media: UploadedMedia, base_url: str) -> dict[str, Any]:
    kind = media.mime_type.partition("/")[0]
    url = f"{base_url}/media/{media.id}" if media.processed else None
    return {
        "id": str(media.id),
        "type": kind,
        "url": url,
        "preview_url": url,
        "remote_url": None,
        "preview_remote_url": None,
        "text_url": None,
        "meta": {},
        "description": media.description,
        "blurhash": None,
    }


def configuration(
    *, max_characters: int, characters_per_url: int, description_limit: int, image_size_limit: int
) -> dict[str, Any]:
    """What the instance allows; the part that both versions of its entity have."""
    return {
        "accounts": {"max_featured_tags": 10},
        "statuses": {
            "max_characters": max_characters,
            "max_media_attachments": MEDIA_ATTACHMENTS_MAX,
            "characters_reserved_per_url": characters_per_url,
        },
        "media_attachments": {
            "description_limit": description_limit,
            "supported_mime_types": MEDIA_TYPES,
            "image_size_limit": image_size_limit,
            "image_matrix_limit": 33_177_600,
            "video_size_limit": VIDEO_BYTES_MAX,
            "video_frame_rate_limit": 120,
            "video_matrix_limit": 8_294_400,
        },
        "polls": {
            "max_options": 4,
            "max_characters_per_option": 50,
            "min_expiration": 300,
            "max_expiration": 2_629_746,
        },
    }


def instance_v1(host: str, configured: dict[str, Any], count: int) -> dict[str, Any]:
    return {
        "uri": host,
        "title": "Sandbox",
        "short_description": "",
        "description": "",
        "email": "",
        "version": VERSION,
        "urls": {"streaming_api": f"ws://{host}"},
        "stats": {"user_count": 1, "status_count": count, "domain_count": 0},
        "thumbnail": None,
        "languages": ["en"],
        "registrations": False,
        "approval_required": False,
        "invites_enabled": False,
        "configuration": configured,
        "contact_account": None,
        "rules": [],
    }


def instance_v2(host: str, configured: dict[str, Any]) -> dict[str, Any]:
    further = {
        "urls": {"streaming": f"ws://{host}"},
        "vapid": {"public_key": ""},
        "translation": {"enabled": False},
    }
    return {
        "domain": host,
        "title": "Sandbox",
        "version": VERSION,
        "source_url": "https://github.com/mastodon/mastodon",
        "description": "",
        "usage": {"users": {"active_month": 1}},
        "thumbnail": {"url": f"http://{host}/preview.png"},
        "icon": [],
        "languages": ["en"],
        "configuration": {**configured, **further},
        "registrations": {"enabled": False, "approval_required": False, "message": None},
        "api_versions": {"mastodon": API_VERSION},
        "contact": {"email": "", "account": None},
        "rules": [],
    }


def _mention(name: str, base_url: str) -> dict[str, str]:
    username = name.partition("@")[0]
    return {"id": "1", "username": username, "url": f"{base_url}/@{name}", "acct": name}


def _card(url: str) -> dict[str, Any]:
    return {
        "url": url,
        "title": url,
        "description": "",
        "language": None,
        "type": "link",
        "author_name": "",
        "author_url": "",
        "provider_name": "",
        "provider_url": "",
        "html": "",
        "width": 0,
        "height": 0,
        "image": None,
        "image_description": "",
        "embed_url": "",
        "blurhash": None,
        "published_at": None,
        "authors": [],
    }
