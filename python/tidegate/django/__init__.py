"""Gates for Django: middleware at the edge, and database engines as the backstop.

MIDDLEWARE = ["tidegate.django.middleware.GateMiddleware", ...]
DATABASES = {"default": {"ENGINE": "tidegate.django.postgresql", "TIDEGATE": {"limit": 20}, ...}}
"""

from tidegate.django.gates import database_gate

__all__ = ["TESTED", "database_gate"]

TESTED = "Django 5.2.19, 6.1.3"
