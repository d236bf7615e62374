"""Runs a command beside a PostgreSQL server of its own: ``with_postgres.py COMMAND...``.

The command finds the server's URL in TIDEGATE_TEST_DSN. Its exit code is this program's; 77 where there is no server
on this machine.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tidegate.demo.postgres_server import PostgresError, PostgresServer


def main() -> int:
    """Start the server, run the command, end the server."""
    try:
        server = PostgresServer()
    except PostgresError as error:
        print(error, file=sys.stderr)
        return 77
    with server:
        environment = {**os.environ, "TIDEGATE_TEST_DSN": server.dsn}
        return subprocess.run(sys.argv[1:], env=environment, check=False).returncode  # noqa: S603 - the caller's


if __name__ == "__main__":
    sys.exit(main())
