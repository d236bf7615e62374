#!/usr/bin/env bash
# The tests of the Node.js package: `make polyglot ARGS=node`.
# Everything it needs goes to bindings/node/node_modules and target/, by package-lock.json.

set -u
cd "$(dirname "$0")/../.."
. scripts/steps.sh
. scripts/native.sh

package=$PWD/bindings/node
if ! has node || ! has npm; then
    skip node "Node.js with npm is not installed"
    summary node
    exit
elif ! node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)'; then
    skip node "the package needs Node.js 20 or later, this is $(node --version)"
    summary node
    exit
fi

# tests NAME FILES...: programs whose lines of TAP are tests.
tests() {
    local name=$1
    shift
    (cd "$package" && TIDEGATE_LIBRARY=$hooks/libtidegate.so.1 "${server[@]}" \
        node --expose-gc --test --test-reporter=tap "$@") >"$log" 2>&1
    local code=$? good bad skips
    good=$(grep -c '^ok .*' "$log")
    bad=$(grep -c '^not ok ' "$log")
    skips=$(grep -c '^ok .*# SKIP' "$log")
    grep '^ok .*# SKIP' "$log" | sed 's/^ok [0-9]* - /SKIPPED  /'
    passed=$((passed + good - skips)) skipped=$((skipped + skips))
    if [ "$code" -eq 0 ] && [ "$good" -gt 0 ]; then
        echo "ok       $name: $((good - skips)) tests"
    else
        echo "FAILED   $name (exit code $code)"
        grep -v '^ok ' "$log" | sed 's/^/    /'
        failed=$((failed + (bad > 0 ? bad : 1)))
    fi
}

# What `npm pack` makes, installed as users do, without an install script having run.
packed() {
    local folder=$target/packed platform
    platform=$(node -p '`${process.platform}-${process.arch}`')
    rm -rf "$folder" && mkdir -p "$folder/package" "$folder/user" &&
        cp -r "$package/lib" "$package/package.json" "$package/README.md" "$folder/package" &&
        mkdir -p "$folder/package/native/$platform" &&
        cp "$tree/lib/libtidegate.so.1" "$folder/package/native/$platform/" &&
        (cd "$folder" && npm pack --silent --pack-destination . ./package) &&
        (cd "$folder/user" && npm init --yes >/dev/null && npm install --silent --no-fund --no-audit --ignore-scripts ../tidegate-*.tgz) &&
        (cd "$folder/user" && env -u TIDEGATE_LIBRARY node -e '
            const { Gate } = require("tidegate");
            new Gate("db", 1).run(() => 1).then((one) => process.exit(one === 1 ? 0 : 1));')
}

step "the library builds and installs" prepare
step "the package installs what it needs" sh -c "cd '$package' && npm ci --silent --ignore-scripts"
[ "$failed" -eq 0 ] || { summary node; exit 1; }

server=()
[ -x .venv/bin/python ] || step "Python, for a PostgreSQL" make --silent .venv/.package
if .venv/bin/python scripts/with_postgres.py true 2>/dev/null; then
    server=("$PWD/.venv/bin/python" "$PWD/scripts/with_postgres.py")
fi
tests "vectors" test/vectors.test.js
tests "package" test/[!v]*.test.js
step "npm pack makes a package that finds its library" packed
summary node
