#!/usr/bin/env bash
# The table by the Node.js package.
set -eu
command -v node >/dev/null && command -v npm >/dev/null || { echo "Node.js with npm is not installed" >&2; exit 77; }
package=$PWD/bindings/node
[ -d "$package/node_modules" ] || (cd "$package" && npm ci --silent --ignore-scripts >&2)
TIDEGATE_LIBRARY=$TIDEGATE_LIBRARIES/libtidegate.so.1 exec node tests/overload/programs/table.js "$1"
