#!/usr/bin/env bash
# Every language's overload table against the expected one: `make polyglot ARGS=overload`, or some of them:
# `tests/overload/run.sh go cpp`. See README.md.

set -u
cd "$(dirname "$0")/../.."
. scripts/steps.sh
. scripts/native.sh

workload=$PWD/tests/overload/workload.json
python=${PYTHON:-python3}
table=$(mktemp)
trap 'rm -f "$log" "$table"' EXIT

as_written() {
    "$python" tests/overload/workload.py | diff - "$workload"
}

# Of a wrong table, one number off, it says so.
notices() {
    ! sed -E 's/"high_water": ?8/"high_water": 9/' "$table" |
        "$python" tests/overload/compare.py "$workload" "$1" >/dev/null
}

step "the library builds and installs" prepare
[ "$failed" -eq 0 ] || { summary overload; exit 1; }
export TIDEGATE_INCLUDE=$tree/include TIDEGATE_LIBRARIES=$hooks
step "workload.json is as workload.py writes it" as_written

[ $# -gt 0 ] || set -- python cpp go java node
for language in "$@"; do
    program=tests/overload/programs/$language.sh
    [ -e "$program" ] || { skip "$language" "not in this repository"; continue; }
    code=0
    "$program" "$workload" >"$table" 2>"$log.err" || code=$?
    if [ "$code" -eq 77 ]; then
        skip "$language" "$(tail -1 "$log.err")"
    elif [ "$code" -ne 0 ]; then
        step "$language" sh -c 'cat "$1"; exit 1' sh "$log.err"
    else
        step "$language" "$python" tests/overload/compare.py "$workload" "$language" <"$table"
        step "$language, one number off" notices "$language"
    fi
    rm -f "$log.err"
done

summary overload
