"""Style, script and icon: each under a name with the hash of its content, so that a browser keeps it for good.

Files of `static/css` are served as one, in the order of their names. Compressed forms are made when first asked for.
"""

import gzip
import hashlib
import re
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

from fastapi import Request, Response

from tsuzuki.model.errors import NotFound
from tsuzuki.web.route import api_router
from tsuzuki.web.security.rights import public

FOLDER = Path(__file__).parents[1] / "static"
PREFIX = "/static"
MEDIA_TYPES = MappingProxyType(
    {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
)
FOR_GOOD = "public, max-age=31536000, immutable"
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SPACE = re.compile(r"\s*\n\s*")

router = api_router(prefix="")


@dataclass(frozen=True)
class Asset:
    name: str
    content: bytes

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()[:12]

    @property
    def url(self) -> str:
        stem, _, suffix = self.name.rpartition(".")
        return f"{PREFIX}/{stem}.{self.digest}.{suffix}"

    @cached_property
    def gzip(self) -> bytes:
        return gzip.compress(self.content, 9, mtime=0)

    @cached_property
    def brotli(self) -> bytes | None:
        """None without the package, which is not needed."""
        try:
            packed: bytes = import_module("brotli").compress(self.content)
        except ModuleNotFoundError:
            return None
        return packed

    def encoded(self, accepted: str) -> tuple[bytes, str | None]:
        """The smallest form that a browser takes, and the name of its encoding."""
        names = {part.partition(";")[0].strip() for part in accepted.lower().split(",")}
        if "br" in names and self.brotli is not None:
            return self.brotli, "br"
        return (self.gzip, "gzip") if "gzip" in names else (self.content, None)


@cache
def assets() -> dict[str, Asset]:
    """By name."""
    style = "\n".join(
        file.read_text(encoding="utf-8") for file in sorted((FOLDER / "css").glob("*.css"))
    )
    short_style = _SPACE.sub("\n", _COMMENT.sub("", style)).strip()
    found = [Asset("tsuzuki.css", short_style.encode("utf-8"))]
    found += [
        Asset(file.name, file.read_bytes())
        for file in sorted(FOLDER.iterdir())
        if file.suffix in MEDIA_TYPES
    ]
    return {asset.name: asset for asset in found}


def asset_url(name: str) -> str:
    return assets()[name].url


@cache
def _by_url() -> dict[str, Asset]:
    return {asset.url: asset for asset in assets().values()}


@router.get(
    PREFIX + "/{file}", dependencies=[public()], include_in_schema=False, response_model=None
)
async def static_file(request: Request, file: str) -> Response:
    asset = _by_url().get(f"{PREFIX}/{file}")
    if asset is None:
        raise NotFound(f"there is no file {file}", hint="Reload the page.", code="no_such_file")
    etag = f'"{asset.digest}"'
    headers = {"Cache-Control": FOR_GOOD, "ETag": etag, "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    content, encoding = asset.encoded(request.headers.get("accept-encoding", ""))
    if encoding:
        headers["Content-Encoding"] = encoding
    media_type = MEDIA_TYPES[Path(asset.name).suffix]
    return Response(content, headers=headers, media_type=media_type)
