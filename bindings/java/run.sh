#!/usr/bin/env bash
# The tests of the Java module: `make polyglot ARGS=java`. Everything it makes is in target/java; what it downloads in
# Maven's own cache.

set -u
cd "$(dirname "$0")/../.."
. scripts/steps.sh
. scripts/native.sh
. bindings/java/environment.sh

module=$PWD/bindings/java
reports=$PWD/target/java/module/surefire-reports
export RUST_BACKTRACE=0 # a test makes the library panic, on purpose

# Each test in Maven's reports counts.
tests() {
    local server=() said code=0 each
    rm -rf "$reports"
    if said=$(scripts/with_postgres.sh true 2>&1); then
        server=("$PWD/scripts/with_postgres.sh")
    else
        echo "without PostgreSQL: $(tail -1 <<<"$said")"
    fi
    TIDEGATE_LIBRARY=$hooks/libtidegate.so.1 "${server[@]}" mvn -B -q -f "$module" test >"$log" 2>&1 || code=$?
    local total=0 bad=0 skips=0
    for each in "$reports"/*.xml; do
        [ -e "$each" ] || continue
        read -r t e s f < <(sed -n 's/.*<testsuite .* tests="\([0-9]*\)" errors="\([0-9]*\)" skipped="\([0-9]*\)" failures="\([0-9]*\)".*/\1 \2 \3 \4/p' "$each" | head -1)
        total=$((total + t)) bad=$((bad + e + f)) skips=$((skips + s))
    done
    for ((each = 0; each < skips; each++)); do
        skip "a test" "it says why in $reports"
    done
    counted tests "$code" $((total - bad - skips)) "$bad"
}

# The program in README.md, as its readers build it: against the jar and what is installed.
documented() {
    local folder=$PWD/target/java/readme
    mkdir -p "$folder"
    sed -n '/^```java$/,/^```$/{/^```/!p}' bindings/java/README.md >"$folder/Main.java"
    mvn -B -q -f "$module" jar:jar &&
        TIDEGATE_LIBRARY=$tree/lib/libtidegate.so.1 "$JAVA_HOME/bin/java" --enable-native-access=ALL-UNNAMED \
            -cp target/java/module/tidegate-0.1.0.jar "$folder/Main.java" >"$folder/said" &&
        grep "^gate 'db' shed by priority: 15 of 20 in flight (priority sheddable)" "$folder/said" &&
        grep '^15 in flight$' "$folder/said"
}

if ! java_at_hand; then
    skip "all of it" "$missing"
    summary java
    exit
fi
step "the library builds and installs" prepare
[ "$failed" -eq 0 ] || { summary java; exit 1; }
if mvn -B -q -f "$module" test-compile >"$log" 2>&1; then
    tests
    step "the program in README.md" documented
else
    step "the module compiles" sh -c 'cat "$1"; exit 1' sh "$log"
fi
summary java
