#!/usr/bin/env bash
# Each language's tests of the C ABI, or those of the languages that are named: `make polyglot ARGS='c cpp'`.
# Each ends with a line `NAME: N passed, N failed`.

set -u
cd "$(dirname "$0")/.."

code=0
for language in "${@:-c cpp go node overload}"; do
    for name in $language; do
        if [ -x "tests/$name/run.sh" ]; then
            "tests/$name/run.sh" || code=1
        elif [ -x "bindings/$name/run.sh" ]; then
            "bindings/$name/run.sh" || code=1
        elif [ $# -gt 0 ]; then
            echo "there are no tests of $name" >&2
            code=1
        fi
    done
done
exit $code
