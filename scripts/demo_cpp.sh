#!/usr/bin/env bash
# Builds examples/cpp-chatbot from an installed library and drives it into overload: `make demo-cpp`.
# Arguments are those of `tidegate demo`. Exit code 0: holds; 1: does not; 2: something is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

build=target/cpp-chatbot
prefix=$PWD/target/cpp-chatbot/prefix

lacking() {
    echo "demo-cpp needs $1: apt-get install cmake g++ pkg-config libcpp-httplib-dev libpq-dev" >&2
    exit 2
}
for program in cmake g++ pkg-config; do
    command -v $program >/dev/null || lacking $program
done
for library in cpp-httplib libpq; do
    pkg-config --exists $library || lacking "the library $library"
done

PREFIX=$prefix scripts/install.sh
cmake -S examples/cpp-chatbot -B $build -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build $build >/dev/null

exec .venv/bin/tidegate demo --backend $build/cpp-chatbot --loads 0.5,4 "$@"
