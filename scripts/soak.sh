#!/usr/bin/env bash
# Long storms, models, sanitizers and capacity tests: about half an hour. `make soak` sets up .venv and calls this.
# TIDEGATE_SOAK_SECONDS: the length of the storms (120).

set -u
cd "$(dirname "$0")/.."
. scripts/steps.sh

python=${PYTHON:-.venv/bin/python}
seconds=${TIDEGATE_SOAK_SECONDS:-120}
host=$(rustc -vV | sed -n 's/^host: //p')

# Unstable, hence the bootstrap. std is not rebuilt, hence a storm that needs none of its orderings.
sanitizer="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer"
tsan() {
    env RUSTC_BOOTSTRAP=1 RUSTFLAGS="$sanitizer" TSAN_OPTIONS=halt_on_error=1 \
        cargo test --locked --target "$host" --target-dir target/tsan "$@"
}

# Asked of an empty program, so that an error of ours is a failure and not a machine that lacks something.
sanitizer_runs() {
    local program
    program=$(mktemp)
    # shellcheck disable=SC2086 # the flags are words
    echo 'fn main() {}' | RUSTC_BOOTSTRAP=1 rustc $sanitizer --target "$host" -o "$program" - && "$program"
    local code=$?
    rm -f "$program"
    return $code
}

finds_the_planted_race() {
    TIDEGATE_PLANT_RACE=1 tsan --test sanitized 2>&1 | grep -q 'WARNING: ThreadSanitizer: data race'
}

step "storms" env TIDEGATE_SOAK_SECONDS="$seconds" cargo test --locked --release --test threads
step "random operations" env PROPTEST_CASES=20000 cargo test --locked --release --test model
step "every interleaving of the models" env RUSTFLAGS="--cfg tidegate_loom" \
    cargo test --locked --release --target-dir target/loom --test loom
step "a file that is read again and again, under load" env TIDEGATE_SOAK_RELOADS=200000 \
    cargo test --locked --release --features file --test file reloads_under_load
step "the arena, with seeds that nothing was chosen by" \
    cargo run --quiet --locked --release --features sim --example arena -- --seeds 1001-1016
step "as many permits as a gate can name" cargo test --locked --release -p tidegate-c -- --ignored
step "the C ABI's random programs and storms" env TIDEGATE_FUZZ_STEPS=50000000 TIDEGATE_TEST_PERCENT=1000 \
    TIDEGATE_SOAK=1 scripts/polyglot.sh
step "the capacity test on 400 simulated systems" env TIDEGATE_CAPACITY_SEEDS=400 \
    cargo test --locked --release --features capacity,sim --test capacity simulated
for _ in 1 2 3 4 5; do
    step "forks" cargo test --locked --release --test fork --test published
done

if sanitizer_runs >/dev/null 2>&1; then
    step "ThreadSanitizer finds a planted race" finds_the_planted_race
    step "ThreadSanitizer on a storm" tsan --test sanitized
else
    skip "ThreadSanitizer" "this toolchain or machine cannot run a program built with it"
fi

step "databases that stand still, are slow and die, again and again" env TIDEGATE_OUTAGES=10 \
    "$python" -m pytest tests/python/pools/test_pools_outage.py
for _ in 1 2 3 4 5; do
    step "Python's threads, loops and forks" "$python" -m pytest tests/python/gate
done

step "the recommended limit on real targets" "$python" scripts/capacity_soak.py

summary soak
