#!/usr/bin/env bash
# The tests of the Go module: `make polyglot ARGS=go`. TIDEGATE_TEST_PERCENT: the length of its storms;
# TIDEGATE_SOAK: also with Go's own detectors.

set -u
cd "$(dirname "$0")/../.."
. scripts/steps.sh
. scripts/native.sh
. bindings/go/environment.sh

export RUST_BACKTRACE=0 # a test makes the library panic, on purpose
out=$PWD/target/go
mkdir -p "$out"

# tests NAME FOLDER COMMAND...: each test of `COMMAND -v` counts, and so does each that was skipped.
tests() {
    local name=$1 folder=$2 test
    shift 2
    program "$name" verbose "$folder" "$@"
    while read -r test; do
        skip "$name, $test" "it says why above"
    done < <(sed -n 's/^ *--- SKIP: \([^ ]*\).*/\1/p' "$log")
}

verbose() {
    (
        set -o pipefail
        cd "bindings/go/$1" && shift && "$@" -v 2>&1 |
            sed -E '/^ok *\t/d; s/^ *--- PASS: /ok       /; s/^ *--- FAIL: /FAILED   /; /^=== RUN/d'
    )
}

# The program in README.md, as its readers build it: with pkg-config, against what is installed.
documented() {
    local folder=$out/readme
    mkdir -p "$folder"
    sed -n '/^```go$/,/^```$/{/^```/!p}' bindings/go/README.md >"$folder/main.go"
    printf 'module readme\n\ngo 1.25\n\nrequire tidegate v0.0.0\n\nreplace tidegate => %s\n' "$PWD/bindings/go" >"$folder/go.mod"
    (cd "$folder" && env -u CGO_CFLAGS -u CGO_LDFLAGS PKG_CONFIG_PATH="$tree/lib/pkgconfig" go build -o readme . &&
        LD_LIBRARY_PATH=$tree/lib ./readme) >"$folder/said" &&
        grep "^gate 'db' shed by priority: 15 of 20 in flight (priority sheddable)" "$folder/said" &&
        grep '^15 in flight$' "$folder/said"
}

# A library of another version is told before anything is asked of it.
another_version() {
    "$CC" -shared -fPIC tests/cpp/other_abi.c -o "$out/other_abi.so" || return 1
    LD_LIBRARY_PATH=$tree/lib LD_PRELOAD=$out/other_abi.so "$out/readme/readme" >"$out/told" 2>&1
    [ $? -eq 1 ] && grep 'compiled with tidegate.h of ABI version 1 and runs with a libtidegate of ABI version 999' "$out/told"
}

if ! go_at_hand; then
    skip "all of it" "$missing"
    summary go
    exit
fi

step "the library builds and installs" prepare
[ "$failed" -eq 0 ] || { summary go; exit 1; }
against_hooks "$tree/include" "$hooks"

tests "tests" . go test -count=1 -tags tidegate_flags ./...
if [ -n "${TIDEGATE_SOAK:-}" ]; then # each needs a standard library of its own
    tests "with Go's checks of pointers" . env GOEXPERIMENT=cgocheck2 go test -count=1 -tags tidegate_flags ./...
    tests "with Go's race detector" . go test -race -count=1 -tags tidegate_flags ./...
fi

if has pkg-config; then
    step "the program in README.md" documented
    step "a library of another version is told" another_version
else
    skip "the program in README.md" "pkg-config is not installed"
fi

if (cd bindings/go/integration && go mod download) >"$log" 2>&1; then
    if scripts/with_postgres.sh true 2>"$log"; then
        tests "PostgreSQL" integration "$PWD/scripts/with_postgres.sh" go test -count=1 -tags tidegate_flags .
    else
        skip "PostgreSQL" "$(tail -1 "$log")"
    fi
else
    skip "PostgreSQL" "its modules cannot be downloaded: $(tail -1 "$log")"
fi

summary go
