"""Files that are uploaded, processed after a while, and then attached."""

from tsuzuki.sandbox.exchange import Response, StandInRequest, json_response

from . import errors
from .entities import MEDIA_TYPES, VIDEO_BYTES_MAX, media_entity
from .form import UploadedFile, form_of
from .records import Account, UploadedMedia
from .settings import MastodonSettings
from .store import Store


class MediaRoutes:
    """`POST /api/v2/media`, and what is asked and changed under `/api/v1/media/{id}`."""

    def __init__(self, store: Store, settings: MastodonSettings) -> None:
        self._store = store
        self._settings = settings

    def create(self, request: StandInRequest, account: Account) -> Response:
        form = form_of(request)
        file = form.files.get("file")
        if file is None:
            raise errors.invalid("File can't be blank")
        self._check_file(file)
        media = UploadedMedia(
            id=self._store.new_id(),
            account=account,
            mime_type=file.mime_type,
            data=file.data,
            description=self._description(form.text("description")),
            looks_until_processed=self._settings.looks_until_processed,
        )
        self._store.media[media.id] = media
        status = 200 if media.processed else 202
        return json_response(media_entity(media, request.base_url), status=status)

    def show(self, request: StandInRequest, account: Account) -> Response:
        media = self._store.medium(request.params["id"], account)
        status = 200 if media.processed else 206
        response = json_response(media_entity(media, request.base_url), status=status)
        media.looks_until_processed -= 1
        return response

    def update(self, request: StandInRequest, account: Account) -> Response:
        media = self._store.medium(request.params["id"], account)
        media.description = self._description(form_of(request).text("description"))
        return json_response(media_entity(media, request.base_url))

    def _check_file(self, file: UploadedFile) -> None:
        if file.mime_type not in MEDIA_TYPES:
            raise errors.invalid("File content type is invalid, File is invalid")
        image = file.mime_type.startswith("image/")
        limit = self._settings.image_size_limit if image else VIDEO_BYTES_MAX
        if len(file.data) >= limit:
            raise errors.invalid(f"File file size must be less than {limit // 2**20} MB")

    def _description(self, text: str) -> str | None:
        limit = self._settings.description_limit
        if len(text) > limit:
            message = f"Description is too long (maximum is {limit} characters)"
            raise errors.invalid(message)
        return text or None
