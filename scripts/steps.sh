# Sourced by the scripts that run a list of checks: every step runs, also after one that failed, and
# `summary NAME` says how many passed and fails if any did.

passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# step NAME COMMAND...: runs the command; it passes if that succeeds, and its output is shown if it fails.
step() {
    local name=$1
    shift
    if "$@" >"$log" 2>&1; then
        echo "ok       $name"
        passed=$((passed + 1))
    else
        echo "FAILED   $name"
        sed 's/^/    /' "$log"
        failed=$((failed + 1))
    fi
}

# program NAME COMMAND...: a program whose lines that begin with `ok` and `FAILED` are tests; each counts.
program() {
    local name=$1 code=0 good bad
    shift
    "$@" >"$log" 2>&1 || code=$?
    good=$(grep -c '^ok ' "$log")
    bad=$(grep -c '^FAILED ' "$log")
    counted "$name" "$code" "$good" "$bad"
}

# counted NAME CODE GOOD BAD: so many tests of a program passed and failed, and it ended with CODE; its output is in
# the log, and shown if anything is wrong. None at all is wrong.
counted() {
    local name=$1 code=$2 good=$3 bad=$4
    passed=$((passed + good))
    if [ "$code" -eq 0 ] && [ "$bad" -eq 0 ] && [ "$good" -gt 0 ]; then
        echo "ok       $name: $good tests"
    else
        echo "FAILED   $name (exit code $code)"
        sed 's/^/    /' "$log"
        failed=$((failed + (bad > 0 ? bad : 1)))
    fi
}

# skip NAME REASON: something that this machine lacks.
skip() {
    echo "SKIPPED  $1: $2"
    skipped=$((skipped + 1))
}

summary() {
    local rest=""
    [ "$skipped" -eq 0 ] || rest=", $skipped skipped"
    echo "$1: $passed passed, $failed failed$rest"
    [ "$failed" -eq 0 ]
}
