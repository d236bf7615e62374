"""Gates for Django applications, under WSGI and ASGI, for synchronous and asynchronous views.

    MIDDLEWARE = ["tidegate.django.middleware.GateMiddleware", ...]
    TIDEGATE = {"GATE": "myproject.gates.web", "PRIORITY": {"/reports/*": "sheddable"}}

What a permit covers: a request holds it until its view and the middleware inside have returned, and a
streamed response until it is closed.
"""
# Django has no types.
# mypy: disable-error-code="import-untyped"
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import got_request_exception
from django.http import HttpResponse
from django.utils.module_loading import import_string

from tidegate._errors import ConfigError, Shed
from tidegate.django.gates import gate_from_setting
from tidegate.edge import Edge, Entry, Request, shed_in
from tidegate.http import check_status, shed_response

_OPTIONS = {
    "PRIORITY": "priority",
    "HEALTH_PATHS": "health_paths",
    "HEALTH_LIMIT": "health_limit",
    "STATUS": "status",
}


class ShedMiddleware:
    """Answers every Shed with a 503: those of your own ``with gate:`` blocks, and of gated databases.

    Outer middleware sees the 503 as it sees any response. Of the setting TIDEGATE it reads STATUS alone.

    Raises:
        ImproperlyConfigured: The setting TIDEGATE breaks its rules.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        self.get_response = get_response
        self._is_async = iscoroutinefunction(get_response)  # pyright: ignore[reportDeprecated]
        if self._is_async:
            markcoroutinefunction(self)  # pyright: ignore[reportArgumentType]
        self._status = _options().get("status", 503)
        try:
            check_status(self._status)
        except ConfigError as error:
            raise ImproperlyConfigured(f"TIDEGATE: {error}") from error

    def __call__(self, request: Any) -> Any:
        """Serve one request."""
        return self._serve_async(request) if self._is_async else self._serve(request)

    def process_exception(self, request: Any, exception: Exception) -> Any:
        """The answer to a Shed of a view; None for everything else."""
        _note(request, exception)
        shed = shed_in(exception)
        return None if shed is None else self._refusal(request, shed)

    def _serve(self, request: Any) -> Any:
        return self._answered(request, self.get_response(request), _noted(request))

    async def _serve_async(self, request: Any) -> Any:
        response = await self.get_response(request)
        return self._answered(request, response, _noted(request))

    def _answered(self, request: Any, response: Any, error: BaseException | None) -> Any:
        """The response, or that to a Shed of which Django has made a 500: one of a middleware inside."""
        shed = shed_in(error) if error is not None and response.status_code == 500 else None
        return response if shed is None else self._refusal(request, shed)

    def _refusal(self, request: Any, shed: Shed) -> Any:
        status, headers, body = shed_response(shed, self._status)
        headers["Content-Length"] = str(len(body))
        response = HttpResponse(b"" if request.method == "HEAD" else body, status=status, headers=headers)
        # Django logs each 5xx as an error, which is mailed to the administrators: not what a flood needs.
        response._has_been_logged = True  # pyright: ignore[reportAttributeAccessIssue]
        return response


class GateMiddleware(ShedMiddleware):
    """Admits each request through the gate of the setting TIDEGATE, and answers every Shed with a 503.

    First in MIDDLEWARE: what is outside of it is done for those that are shed, too. The setting is a dict:
    GATE is the dotted path of a gate, or a dict of a Gate's arguments; PRIORITY, HEALTH_PATHS, HEALTH_LIMIT,
    and STATUS are the options of ``tidegate.edge.Edge``. A function for PRIORITY gets the HttpRequest, and
    may be named by its dotted path.

    Raises:
        ImproperlyConfigured: The setting TIDEGATE breaks its rules.
    """

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        super().__init__(get_response)
        try:
            self._edge = Edge(
                gate_from_setting(_setting().get("GATE"), "TIDEGATE['GATE']", "web"), **_options()
            )
        except (ConfigError, TypeError) as error:
            raise ImproperlyConfigured(f"TIDEGATE: {error}") from error

    def _serve(self, request: Any) -> Any:
        try:
            entry = self._edge.enter(_request(request))
        except Shed as shed:
            return self._refusal(request, shed)
        with entry.step():
            response = self.get_response(request)
        return self._left(entry, request, response)

    async def _serve_async(self, request: Any) -> Any:
        try:
            entry = self._edge.enter(_request(request))
        except Shed as shed:
            return self._refusal(request, shed)
        with entry.step():
            response = await self.get_response(request)
        return self._left(entry, request, response)

    def _left(self, entry: Entry, request: Any, response: Any) -> Any:
        """The view has returned, and with it the request's permit, if nothing follows."""
        error = _noted(request)
        response = self._answered(request, response, error)
        if response.streaming:
            _hold_until_closed(entry, response)
        else:
            entry.end(error)
        return response


def _hold_until_closed(entry: Entry, response: Any) -> None:
    # A file has no steps of its own, and wrapped it could not be sent by the server's sendfile.
    if getattr(response, "file_to_stream", None) is None:
        steps = entry.async_steps if response.is_async else entry.steps
        response.streaming_content = steps(response.streaming_content)
    response._resource_closers.append(entry.end)


# --- errors that Django handles by itself ----------------------------------------------------------


def _note(request: Any, error: BaseException | None) -> None:
    request._tidegate_error = error


def _note_unhandled(request: Any = None, **_: Any) -> None:
    if request is not None:
        _note(request, sys.exc_info()[1])


got_request_exception.connect(_note_unhandled)


def _noted(request: Any) -> BaseException | None:
    """What the request came to. Once: an error refers to its frames, and these to the request."""
    error: BaseException | None = request.__dict__.pop("_tidegate_error", None)
    return error


def _request(request: Any) -> Request:
    return Request(
        method=request.method,
        path=request.path_info,
        header=request.headers.get,
        client=request.META.get("REMOTE_ADDR"),
        native=request,
    )


# --- the setting -----------------------------------------------------------------------------------


def _setting() -> Mapping[str, Any]:
    setting = getattr(settings, "TIDEGATE", {})
    if not isinstance(setting, Mapping):
        raise ImproperlyConfigured(f"TIDEGATE must be a dict, got {setting!r}")
    unknown = sorted(set(setting) - {"GATE", *_OPTIONS})
    if unknown:
        known = ", ".join(["GATE", *_OPTIONS])
        raise ImproperlyConfigured(f"TIDEGATE has {known}, and not {', '.join(unknown)}")
    return setting


def _options() -> dict[str, Any]:
    options = {_OPTIONS[name]: value for name, value in _setting().items() if name in _OPTIONS}
    if "priority" in options:
        options["priority"] = _imported(options["priority"])
    return options


def _imported(value: Any) -> Any:
    """The value, or what is meant by a dotted path; in a list, too."""
    if isinstance(value, list):
        return [_imported(each) for each in value]
    if not isinstance(value, str) or "." not in value:
        return value
    try:
        return import_string(value)
    except ImportError as error:
        raise ImproperlyConfigured(f"TIDEGATE: {error}") from error
