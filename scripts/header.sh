#!/usr/bin/env bash
# Writes include/tidegate.h and bindings/c/symbols.txt from bindings/c: `make header`.
# With --check it only says whether they are what would be written.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.29.4
cbindgen=target/tools/bin/cbindgen
out=target/c/generated
mkdir -p "$out"

if [ "$("$cbindgen" --version 2>/dev/null)" != "cbindgen $version" ]; then
    cargo install --quiet --root target/tools --version "$version" --locked --force cbindgen
fi

# Negative numbers get parentheses, so that they are one operand wherever they stand.
"$cbindgen" --quiet --config bindings/c/cbindgen.toml --lockfile Cargo.lock bindings/c |
    sed -E 's/^(#define TIDEGATE_[A-Z_]+) (-[0-9]+)$/\1 (\2)/' >"$out/tidegate.h"

cargo build --locked --quiet --release -p tidegate-c
nm --dynamic --defined-only --format=posix target/release/libtidegate.so |
    cut -d' ' -f1 | LC_ALL=C sort >"$out/symbols.txt"

if [ "${1-}" = --check ]; then
    diff -u include/tidegate.h "$out/tidegate.h"
    diff -u bindings/c/symbols.txt "$out/symbols.txt"
else
    cp "$out/tidegate.h" include/tidegate.h
    cp "$out/symbols.txt" bindings/c/symbols.txt
fi
