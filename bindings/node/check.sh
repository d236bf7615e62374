#!/usr/bin/env bash
# Format, lints and types of the Node.js package. Exit code 77: this machine lacks something, which is said.
set -eu
cd "$(dirname "$0")"
command -v node >/dev/null && command -v npm >/dev/null || { echo "Node.js with npm is not installed"; exit 77; }
npm ci --silent --ignore-scripts || { echo "the linter cannot be downloaded"; exit 77; }
npx biome ci .
npx tsc --project .
