"""A Django project that tests itself: `python django_site.py`, with its database as JSON on the input."""

from __future__ import annotations

import io
import json
import sys
import unittest

import django
from django.conf import settings
from django.core.management import call_command

settings.configure(
    DATABASES={"default": json.load(sys.stdin)},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth"],
)
django.setup()

from django.contrib.auth.models import Group  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import TestCase, TransactionTestCase  # noqa: E402
from django.test.utils import get_runner  # noqa: E402
from tidegate.django import database_gate  # noqa: E402

gate = database_gate()
# In the tests, SQLite's database is in memory and passes without a permit.
PERMITS = int(connection.vendor == "postgresql")


class InATransaction(TestCase):
    def test_the_orm(self) -> None:
        Group.objects.create(name="readers")
        self.assertEqual(Group.objects.count(), 1)
        self.assertEqual(gate.in_flight, PERMITS)


class Flushed(TransactionTestCase):
    def test_the_orm(self) -> None:
        Group.objects.create(name="writers")
        connection.close()
        self.assertEqual(gate.in_flight, 0)
        self.assertEqual(Group.objects.count(), 1)
        self.assertEqual(gate.in_flight, PERMITS)


def run_tests() -> int:
    runner = get_runner(settings)(verbosity=0, interactive=False)
    databases = runner.setup_databases()
    try:
        load = unittest.defaultTestLoader.loadTestsFromTestCase
        suite = unittest.TestSuite([load(InATransaction), load(Flushed)])
        result = unittest.TextTestRunner(stream=io.StringIO()).run(suite)
    finally:
        runner.teardown_databases(databases)
    assert result.wasSuccessful(), [*result.failures, *result.errors]
    return result.testsRun


def main() -> None:
    tests = run_tests()
    call_command("check", databases=["default"], stdout=io.StringIO())
    call_command("migrate", verbosity=0)
    call_command("flush", verbosity=0, interactive=False)
    connection.close()
    stats = gate.stats()
    print(json.dumps({"tests": tests, "in_flight": stats.in_flight, "high_water": stats.high_water}))


if __name__ == "__main__":
    main()
