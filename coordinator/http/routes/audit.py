"""The audit log, page by page."""

from typing import Annotated

from fastapi import FastAPI, Query
from starlette.requests import Request

from coordinator.http.authentication import Caller
from coordinator.http.routes.conversion import audit_entry_view
from coordinator.http.routes.registration import add
from coordinator.http.routes.view_models import AuditView
from coordinator.http.services import services_of

__all__ = ["add_routes"]

_MOST_ENTRIES = 1000
_LARGEST_NUMBER = 2**63 - 1
_LATEST = 1e12
_Time = Annotated[float | None, Query(ge=0, le=_LATEST)]


def add_routes(app: FastAPI) -> None:
    """Add the routes of this file."""
    add(app, "GET", "/v1/audit", get_audit_log, caller=Caller.ADMIN, tag="operators", model=AuditView)


async def get_audit_log(
    request: Request,
    after: Annotated[int, Query(ge=0, le=_LARGEST_NUMBER)] = 0,
    limit: Annotated[int, Query(ge=1, le=_MOST_ENTRIES)] = _MOST_ENTRIES,
    since: _Time = None,
    until: _Time = None,
) -> AuditView:
    """Get who did what and when, oldest first.

    `after` is the number of the last entry that the caller has. A page with fewer entries than the limit is the last.
    """
    services = services_of(request)
    entries = await services.threads.run_long(
        services.context.store.audit.page,
        after,
        most=limit,
        since=0.0 if since is None else since,
        until=_LATEST if until is None else until,
    )
    return AuditView(entries=[audit_entry_view(entry) for entry in entries])
