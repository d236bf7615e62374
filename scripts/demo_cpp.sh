#!/usr/bin/env bash
# The demo behind a backend in C++: `make demo-cpp`. Arguments are those of `tidegate demo`.
# Exit code 0: holds; 1: does not; 2: something is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

chatbot=$(scripts/build_cpp_chatbot.sh 2>target/cpp-chatbot.log) || {
    code=$?
    cat target/cpp-chatbot.log >&2
    exit $code
}
exec .venv/bin/tidegate demo --backend "$chatbot" --loads 0.5,4 "$@"
