#!/usr/bin/env bash
# The figures of the Go module, into a file: `bindings/go/bench.sh OUT.json`. Exit code 77: this machine lacks
# something, which is said.
set -eu
out=$(realpath -m "$1")
cd "$(dirname "$0")/../.."
. bindings/go/environment.sh
go_at_hand || { echo "$missing"; exit 77; }
cargo build --locked --quiet --release -p tidegate-c
mkdir -p target/go/bench
ln -sfn ../../release/libtidegate.so target/go/bench/libtidegate.so
ln -sfn ../../release/libtidegate.so target/go/bench/libtidegate.so.1
against_hooks "$PWD/include" "$PWD/target/go/bench"
cd bindings/go/integration
go mod download || { echo "the peers cannot be downloaded"; exit 77; }
go build -tags tidegate_flags -o ../../../target/go/ratios ./ratios
exec ../../../target/go/ratios "$out"
