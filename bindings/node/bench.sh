#!/usr/bin/env bash
# The figures of the Node.js package, into a file: `bindings/node/bench.sh OUT.json`. Exit code 77: this machine lacks
# something, which is said.
set -eu
out=$(realpath -m "$1")
cd "$(dirname "$0")/../.."
command -v node >/dev/null && command -v npm >/dev/null || { echo "Node.js with npm is not installed"; exit 77; }
cargo build --locked --quiet --release -p tidegate-c
cd bindings/node
npm ci --silent --ignore-scripts || { echo "the peers cannot be downloaded"; exit 77; }
TIDEGATE_LIBRARY=../../target/release/libtidegate.so exec node bench/ratios.js "$out"
