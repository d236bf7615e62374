#!/usr/bin/env bash
# The table by the Go module.
set -eu
out=$PWD/target/overload/go
. bindings/go/environment.sh
go_at_hand || { echo "$missing" >&2; exit 77; }
against_hooks "$TIDEGATE_INCLUDE" "$TIDEGATE_LIBRARIES"
mkdir -p target/overload
(cd bindings/go && go build -tags tidegate_flags -o "$out" ./internal/overload) >&2
exec "$out" "$1"
