"""`/hooks/{name}`: requests of other services, which prove themselves by a signature and become events.

Public, because the sender has no token of ours. So a refusal does not say what is wrong with the signature; the log
of the server does.
"""

from typing import Annotated

from fastapi import Path, Request, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from tsuzuki.model.errors import ConfigurationError, NotAuthenticated
from tsuzuki.services.server_log import log
from tsuzuki.web.answers import Model
from tsuzuki.web.problems import RequestError
from tsuzuki.web.route import ApiRouter
from tsuzuki.web.security.rights import PUBLIC

router = ApiRouter("hooks", prefix="")

WebhookName = Annotated[str, Path(min_length=1, max_length=200, examples=["shop"])]


class DeliveryReceived(Model):
    event_id: int
    is_new: bool = Field(
        description="False if the same delivery was received before; its event is returned."
    )


@router.post(
    "/hooks/{name}",
    right=PUBLIC,
    refuses=[401, 404, 409],
    status_code=202,
    responses={
        200: {"model": DeliveryReceived, "description": "The same delivery was received before."}
    },
    openapi_extra={"requestBody": {"content": {"application/json": {"schema": {}}}}},
)
async def receive_webhook(
    request: Request, response: Response, name: WebhookName
) -> DeliveryReceived:
    """A delivery of another service becomes an event, once. Name and headers are checked before its body is read, and
    its bytes before they are parsed."""
    webhooks = request.app.state.application.webhooks
    try:
        await run_in_threadpool(webhooks.check_headers, name, request.headers)
        body = await request.body()
        received = await run_in_threadpool(
            webhooks.receive, name, headers=request.headers, body=body
        )
    except NotAuthenticated as problem:
        log.warning("webhook_refused", webhook=name, code=problem.specific_code)
        raise NotAuthenticated("the delivery was refused", code="webhook_refused") from problem
    except ConfigurationError as problem:
        log.warning("webhook_unusable", webhook=name, code=problem.specific_code)
        raise RequestError(
            "this webhook is not available now",
            status=503,
            hint="See the server's log for the reason.",
            code="webhook_unusable",
        ) from problem
    response.status_code = 202 if received.is_new else 200
    return DeliveryReceived(event_id=received.event.id, is_new=received.is_new)
