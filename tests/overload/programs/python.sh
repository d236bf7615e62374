#!/usr/bin/env bash
# The table by the Python package, in the repository's own environment.
set -eu
if [ ! -x .venv/bin/python ] || ! .venv/bin/python -c 'import tidegate' 2>/dev/null; then
    make .venv/.package >&2
fi
exec .venv/bin/python tests/overload/programs/table.py "$1"
