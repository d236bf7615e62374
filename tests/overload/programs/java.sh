#!/usr/bin/env bash
# The table by the Java module: OverloadTable.java among its tests.
set -eu
. bindings/java/environment.sh
java_at_hand || { echo "$missing" >&2; exit 77; }
classpath=$PWD/target/java/classpath
mvn -B -q -f bindings/java test-compile dependency:build-classpath -Dmdep.outputFile="$classpath" >&2
TIDEGATE_LIBRARY=$TIDEGATE_LIBRARIES/libtidegate.so.1 exec "$JAVA_HOME/bin/java" --enable-native-access=ALL-UNNAMED \
    -cp "target/java/module/classes:target/java/module/test-classes:$(cat "$classpath")" dev.tidegate.OverloadTable "$1"
