"""A gate for Flask applications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from flask import Response

from tidegate._errors import Shed
from tidegate.http import shed_response
from tidegate.wsgi import GateMiddleware, ShedMiddleware

if TYPE_CHECKING:
    from flask import Flask

    from tidegate._native import Gate
    from tidegate.edge import EdgeOptions

_NAME = "tidegate"  # in app.extensions


class Tidegate:
    """Answers every Shed with a 503, and, given a gate, admits each request through it.

    ``Tidegate(app, gate)``, or in a factory ``Tidegate(gate=gate).init_app(app)``. The gate is asked before
    Flask does anything. Error handlers of your own for Shed, as those of a blueprint, come first.

    Args:
        app: The application.
        gate: The gate for whole requests. Without it only the sheds of your own ``with gate:`` blocks and of
            pools are answered.
        **options: See ``tidegate.wsgi.GateMiddleware``.

    Raises:
        RuntimeError: The application has one already.
        ConfigError: An option breaks its rule.
        TypeError: An option has the wrong type.
    """

    def __init__(
        self, app: Flask | None = None, gate: Gate | None = None, **options: Unpack[EdgeOptions]
    ) -> None:
        self.gate = gate
        self._options = options
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Install it in an application. Each application needs it only once."""
        if _NAME in app.extensions:
            raise RuntimeError("this application has a Tidegate already")
        status = self._options.get("status", 503)
        if self.gate is None:
            app.wsgi_app = ShedMiddleware(app.wsgi_app, status=status)  # type: ignore[method-assign]
        else:
            app.wsgi_app = GateMiddleware(app.wsgi_app, self.gate, **self._options)  # type: ignore[method-assign]
        app.extensions[_NAME] = self

        def answer(shed: Exception) -> Response:
            # Here it still passes through after_request functions. What is raised outside of Flask's own
            # handling, as by the first part of a streamed body, only the middleware sees.
            assert isinstance(shed, Shed)
            code, headers, body = shed_response(shed, status)
            return Response(body, code, headers)

        app.register_error_handler(Shed, answer)
