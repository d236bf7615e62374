#!/usr/bin/env bash
# Builds examples/cpp-chatbot as its users would: against an installed library. Says where the program is.
# Exit code 2: something is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

build=target/cpp-chatbot
prefix=$PWD/$build/prefix

lacking() {
    echo "examples/cpp-chatbot needs $1: apt-get install cmake g++ pkg-config libcpp-httplib-dev libpq-dev" >&2
    exit 2
}
for program in cmake c++ pkg-config; do
    command -v $program >/dev/null || lacking $program
done
for library in cpp-httplib libpq; do
    pkg-config --exists $library || lacking "the library $library"
done

PREFIX=$prefix scripts/install.sh >&2
cmake -S examples/cpp-chatbot -B $build -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" >&2
cmake --build $build >&2
echo $build/cpp-chatbot
