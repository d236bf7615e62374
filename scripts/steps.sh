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

# skip NAME REASON: something that this machine lacks.
skip() {
    echo "SKIPPED  $1: $2"
    skipped=$((skipped + 1))
}

summary() {
    echo "$1: $passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}
