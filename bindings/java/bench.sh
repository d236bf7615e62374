#!/usr/bin/env bash
# The figures of the Java module, into a file: `bindings/java/bench.sh OUT.json`. Exit code 77: this machine lacks
# something, which is said.
set -eu
out=$(realpath -m "$1")
cd "$(dirname "$0")/../.."
. bindings/java/environment.sh
java_at_hand || { echo "$missing"; exit 77; }
cargo build --locked --quiet --release -p tidegate-c
classpath=$PWD/target/java/bench-classpath
mvn -B -q -f bindings/java/bench compile dependency:build-classpath -Dmdep.outputFile="$classpath" ||
    { echo "the peers cannot be downloaded, or the benchmark does not compile"; exit 77; }
TIDEGATE_LIBRARY=$PWD/target/release/libtidegate.so exec "$JAVA_HOME/bin/java" --enable-native-access=ALL-UNNAMED \
    -Dcsp.sentinel.log.dir="$PWD/target/java/sentinel" -cp "target/java/bench/classes:$(cat "$classpath")" \
    dev.tidegate.bench.Ratios "$out"
