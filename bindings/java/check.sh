#!/usr/bin/env bash
# Format and lints of the Java module. Exit code 77: this machine lacks something, which is said.
set -eu
cd "$(dirname "$0")/../.."
. bindings/java/environment.sh
java_at_hand || { echo "$missing"; exit 77; }
tools=$PWD/target/java/tools
formatter=google-java-format-1.28.0-all-deps.jar
[ -e "$tools/$formatter" ] || mvn -B -q dependency:copy -DoutputDirectory="$tools" -Dmdep.useBaseVersion=true \
    -Dartifact=com.google.googlejavaformat:google-java-format:1.28.0:jar:all-deps 2>/dev/null ||
    { echo "the formatter cannot be downloaded"; exit 77; }
exports=()
for package in api code file parser tree util; do
    exports+=(--add-exports "jdk.compiler/com.sun.tools.javac.$package=ALL-UNNAMED")
done
mapfile -t files < <(find bindings/java tests/overload/programs -name '*.java')
"$JAVA_HOME/bin/java" "${exports[@]}" -jar "$tools/$formatter" "${1:---dry-run}" --set-exit-if-changed "${files[@]}" ||
    { echo "not as google-java-format has it: bindings/java/check.sh --replace"; exit 1; }
# Every lint of javac, and that of its comments, is an error: see pom.xml.
mvn -B -q -f bindings/java test-compile
