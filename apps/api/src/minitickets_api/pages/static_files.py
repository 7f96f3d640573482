"""Styles, scripts and icons. Their path holds the hash of all of them, so that browsers may keep them for ever."""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

_FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}
_HASH_CHARACTERS = 16
_IMMUTABLE = "public, max-age=31536000, immutable"


@dataclass(frozen=True, kw_only=True)
class _File:
    content_type: str
    plain: bytes
    zipped: bytes


class StaticFiles:
    """All files of ``folder``, held in memory: they are few and small."""

    def __init__(self, folder: Path = _FOLDER) -> None:
        self._files: Mapping[str, _File] = {path.name: _read(path) for path in sorted(folder.iterdir())}
        # One hash for all, so that scripts can import each other by relative names.
        digest = hashlib.sha256()
        for name, file in self._files.items():
            digest.update(f"{name}\0{len(file.plain)}\0".encode() + file.plain)
        self.version = digest.hexdigest()[:_HASH_CHARACTERS]

    def url(self, name: str) -> str:
        """The path of a file. Raises KeyError for none of ours: a template has a typing error."""
        self._files[name]
        return f"/static/{self.version}/{name}"

    async def serve(self, request: Request) -> Response:
        """The file ``name`` of the path.

        While a deploy replaces tasks, a page of one asks the other, under the other's hash: it gets what there is,
        which is better than nothing, but must not keep it.
        """
        is_current = request.path_params["version"] == self.version
        return self._reply(request, request.path_params["name"], _IMMUTABLE if is_current else "no-store")

    async def serve_worker(self, request: Request) -> Response:
        """The service worker, at a path that stays: browsers themselves look whether it has changed."""
        response = self._reply(request, "service_worker.js", "no-cache")
        # Its own policy counts for what it fetches, not that of the page.
        response.headers["content-security-policy"] = "default-src 'none'; connect-src 'self'"
        return response

    def _reply(self, request: Request, name: str, caching: str) -> Response:
        file = self._files.get(name)
        if file is None:
            return Response("There is no such file.", status_code=404, media_type="text/plain")
        headers = {"cache-control": caching, "vary": "accept-encoding"}
        if accepts_gzip(request):
            return Response(file.zipped, media_type=file.content_type, headers={**headers, "content-encoding": "gzip"})
        return Response(file.plain, media_type=file.content_type, headers=headers)


def accepts_gzip(request: Request) -> bool:
    """Whether the client takes gzip."""
    for entry in request.headers.get("accept-encoding", "").split(","):
        coding, _, weight = entry.partition(";")
        if coding.strip().lower() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _read(path: Path) -> _File:
    content = path.read_bytes()
    return _File(content_type=_TYPES[path.suffix], plain=content, zipped=gzip.compress(content, 9, mtime=0))
