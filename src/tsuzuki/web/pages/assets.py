"""Style, script and icon: each under a name with the hash of its content, so that a browser keeps it for good.

Files of `static/css` are served as one: the host's in the order of their names, then those of collectors.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from fastapi import Request, Response

from tsuzuki.model.errors import NotFound
from tsuzuki.web.encoded_content import EncodedContent
from tsuzuki.web.pages.extension import folders
from tsuzuki.web.route import ApiRouter
from tsuzuki.web.security.rights import PUBLIC

FOLDER = Path(__file__).parents[1] / "static"
PREFIX = "/static"
MEDIA_TYPES = MappingProxyType(
    {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
)
FOR_GOOD = "public, max-age=31536000, immutable"
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SPACE = re.compile(r"\s*\n\s*")

router = ApiRouter(prefix="")


@dataclass(frozen=True)
class Asset:
    name: str
    encoded: EncodedContent

    @property
    def url(self) -> str:
        stem, _, suffix = self.name.rpartition(".")
        return f"{PREFIX}/{stem}.{self.encoded.digest}.{suffix}"


@cache
def assets() -> dict[str, Asset]:
    """By name."""
    style = "\n".join(
        file.read_text(encoding="utf-8")
        for folder in folders("static/css")
        for file in sorted(folder.glob("*.css"))
    )
    short_style = _SPACE.sub("\n", _COMMENT.sub("", style)).strip()
    found = [Asset("tsuzuki.css", EncodedContent(short_style.encode("utf-8")))]
    found += [
        Asset(file.name, EncodedContent(file.read_bytes()))
        for file in sorted(FOLDER.iterdir())
        if file.suffix in MEDIA_TYPES
    ]
    return {asset.name: asset for asset in found}


def asset_url(name: str) -> str:
    return assets()[name].url


@cache
def _by_url() -> dict[str, Asset]:
    return {asset.url: asset for asset in assets().values()}


@router.get(PREFIX + "/{file}", right=PUBLIC, include_in_schema=False, response_model=None)
async def static_file(request: Request, file: str) -> Response:
    asset = _by_url().get(f"{PREFIX}/{file}")
    if asset is None:
        raise NotFound(f"there is no file {file}", hint="Reload the page.", code="no_such_file")
    media_type = MEDIA_TYPES[Path(asset.name).suffix]
    return asset.encoded.answer(request, media_type=media_type, cache_control=FOR_GOOD)
