#!/usr/bin/env bash
# Long storms, models and sanitizers: about ten minutes. `make soak` sets up .venv and calls this.
# TIDEGATE_SOAK_SECONDS: the length of the storms (120).

set -u
cd "$(dirname "$0")/.."

python=${PYTHON:-.venv/bin/python}
seconds=${TIDEGATE_SOAK_SECONDS:-120}
host=$(rustc -vV | sed -n 's/^host: //p')
passed=0 failed=0 skipped=0

# step NAME COMMAND...: runs the command and shows its last lines if it fails.
step() {
    local name=$1 log
    shift
    log=$(mktemp)
    if "$@" >"$log" 2>&1; then
        echo "ok       $name"
        passed=$((passed + 1))
    else
        echo "FAILED   $name"
        tail -n 60 "$log" | sed 's/^/    /'
        failed=$((failed + 1))
    fi
    rm -f "$log"
}

skip() {
    echo "SKIPPED  $1: $2"
    skipped=$((skipped + 1))
}

# Unstable, hence the bootstrap. std is not rebuilt, hence a storm that needs none of its orderings.
tsan() {
    env RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer" \
        TSAN_OPTIONS=halt_on_error=1 \
        cargo test --locked --target "$host" --target-dir target/tsan "$@"
}

finds_the_planted_race() {
    TIDEGATE_PLANT_RACE=1 tsan --test sanitized 2>&1 | grep -q 'WARNING: ThreadSanitizer: data race'
}

step "storms" env TIDEGATE_SOAK_SECONDS="$seconds" cargo test --locked --release --test threads
step "random operations" env PROPTEST_CASES=20000 cargo test --locked --release --test model
step "every interleaving of the models" env RUSTFLAGS="--cfg tidegate_loom" \
    cargo test --locked --release --target-dir target/loom --test loom
for _ in 1 2 3 4 5; do
    step "forks" cargo test --locked --release --test fork
done

if tsan --no-run >/dev/null 2>&1; then
    step "ThreadSanitizer finds a planted race" finds_the_planted_race
    step "ThreadSanitizer on a storm" tsan --test sanitized
else
    skip "ThreadSanitizer" "this toolchain cannot build with it (try it: RUSTC_BOOTSTRAP=1, -Zsanitizer=thread)"
fi

for _ in 1 2 3 4 5; do
    step "Python's threads, loops and forks" "$python" -m pytest tests/python/gate
done

echo "soak: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
