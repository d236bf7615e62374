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

# tests NAME FILE...: of test/FILE.test.js each line of TAP is a test.
tests() {
    local name=$1
    shift
    set -- "${@/%/.test.js}"
    set -- "${@/#/test/}"
    (cd "$package" && TIDEGATE_LIBRARY=$hooks/libtidegate.so.1 "${server[@]}" \
        node --expose-gc --test --test-reporter=tap "$@") >"$log" 2>&1
    local code=$? good bad skips
    good=$(grep -c '^ok .*' "$log")
    bad=$(grep -c '^not ok ' "$log")
    skips=$(grep -c '^ok .*# SKIP' "$log")
    grep '^ok .*# SKIP' "$log" | sed 's/^ok [0-9]* - /SKIPPED  /'
    skipped=$((skipped + skips))
    counted "$name" "$code" $((good - skips)) "$bad"
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

export RUST_BACKTRACE=0 # a test makes the library panic, on purpose
server=()
if said=$(scripts/with_postgres.sh true 2>&1); then
    server=("$PWD/scripts/with_postgres.sh")
else
    echo "without PostgreSQL: $(tail -1 <<<"$said")"
fi
tests "vectors" vectors
tests "package" gate shed controller pressure collected library http pg
step "npm pack makes a package that finds its library" packed
summary node
