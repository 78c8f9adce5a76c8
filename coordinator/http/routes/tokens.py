"""The operators' tokens: list, create, rotate and revoke them."""

import secrets
from dataclasses import replace
from functools import partial
from typing import Annotated

from fastapi import FastAPI, Path
from starlette.requests import Request
from starlette.responses import Response

from coordinator.federations.tokens import OperatorRole, hash_of, new_token
from coordinator.http.authentication import Caller, actor_of
from coordinator.http.error_handlers import HttpError
from coordinator.http.operator_tokens import rewrite_file
from coordinator.http.routes.conversion import new_token_view, token_view
from coordinator.http.routes.openapi_schemas import IDENTIFIER, reference
from coordinator.http.routes.registration import add, media
from coordinator.http.routes.request_bodies import read_model
from coordinator.http.routes.view_models import RotateRequest, TokenRequest, TokensView
from coordinator.http.server_settings import ServerLimits
from coordinator.http.services import Services, services_of
from coordinator.storage.records import Actor, OperatorToken
from coordinator.storage.token_store import Revocation

__all__ = ["add_routes"]

_Name = Annotated[str, Path(pattern=IDENTIFIER, description="The token's name.")]
_LIST = "List them with: edgefl fed tokens"


def add_routes(app: FastAPI, limits: ServerLimits) -> None:
    """Add the routes of this file."""
    admin = partial(add, app, caller=Caller.ADMIN, tag="operators")
    new = media(reference("NewTokenView"), about="The token, shown only once.")
    admin("GET", "/v1/tokens", list_tokens, model=TokensView)
    admin(
        "POST",
        "/v1/tokens",
        create_token,
        status=201,
        answers={201: new},
        body=media(reference("TokenRequest"), about="Its name, its role and its limits.", required=True),
        most_bytes=limits.json_bytes,
    )
    admin(
        "POST",
        "/v1/tokens/{token_name}/rotate",
        rotate_token,
        status=201,
        answers={201: new},
        body=media(reference("RotateRequest"), about="How long the new one is valid."),
        most_bytes=limits.json_bytes,
    )
    admin("DELETE", "/v1/tokens/{token_name}", revoke_token, status=204)


async def list_tokens(request: Request) -> TokensView:
    """List the operators' tokens, without the tokens themselves."""
    services = services_of(request)
    known = await services.threads.run(services.context.store.tokens.all)
    return TokensView(tokens=[token_view(token) for token in known])


async def create_token(request: Request) -> Response:
    """Create a token of an operator. It is shown only once: only its hash is stored."""
    services = services_of(request)
    requested = await read_model(request, TokenRequest)
    role = OperatorRole(requested.role)
    if requested.name in set(OperatorRole):
        raise HttpError(
            409, f"{requested.name!r} is the token that the coordinator is started with", fix="Choose another name."
        )
    secret = new_token(role)
    token = _token(services, requested.name, role, secret, requested.expires_seconds)
    if not await services.threads.run(services.context.store.tokens.add, token, by=actor_of(request)):
        raise HttpError(
            409, f"there is a token {requested.name!r}", fix="Choose another name, or rotate or revoke that one first."
        )
    return _shown(token, secret)


async def rotate_token(request: Request, token_name: _Name) -> Response:
    """Replace a token: the new one is shown only once, and the old one is no longer valid."""
    services = services_of(request)
    requested = await read_model(request, RotateRequest)
    token, secret = await services.threads.run(
        _rotate, services, token_name, requested.expires_seconds, actor_of(request)
    )
    return _shown(token, secret)


def _rotate(services: Services, name: str, seconds: float | None, by: Actor) -> tuple[OperatorToken, str]:
    tokens = services.context.store.tokens
    known = [token for token in tokens.all() if token.name == name and token.revoked_at is None]
    if not known:
        raise _unknown(name)
    (old,) = known
    if seconds is None and old.expires_at is not None:
        seconds = old.expires_at - old.created_at  # as long as before
    secret = new_token(old.role)
    new = replace(_token(services, name, old.role, secret, seconds), from_start=old.from_start)
    if old.from_start and services.state is not None:
        # First: a coordinator that is killed in between takes the token from its file when it starts again.
        rewrite_file(services.state, old.role, old.hash, secret)
    if not tokens.rotate(new, by=by):
        raise _unknown(name)
    return new, secret


async def revoke_token(request: Request, token_name: _Name) -> Response:
    """Revoke a token, unless nobody could administer the coordinator afterwards."""
    services = services_of(request)
    outcome = await services.threads.run(
        services.context.store.tokens.revoke, token_name, services.context.now(), by=actor_of(request)
    )
    if outcome is Revocation.UNKNOWN:
        raise _unknown(token_name)
    if outcome is Revocation.LAST_ADMIN:
        raise HttpError(
            409,
            f"{token_name!r} is the last admin token: without it, nobody could administer this coordinator",
            fix="Create another admin token first, or rotate this one.",
        )
    return Response(status_code=204)


def _token(services: Services, name: str, role: OperatorRole, secret: str, seconds: float | None) -> OperatorToken:
    now = services.context.now()
    expires_at = None if seconds is None else now + seconds
    return OperatorToken(
        id=secrets.token_hex(6), name=name, role=role, hash=hash_of(secret), created_at=now, expires_at=expires_at
    )


def _shown(token: OperatorToken, secret: str) -> Response:
    body = new_token_view(token, secret).model_dump_json().encode()
    return Response(body, 201, {"Cache-Control": "no-store"}, "application/json")


def _unknown(name: str) -> HttpError:
    return HttpError(404, f"there is no token {name!r} that could be changed", fix=_LIST)
