#!/usr/bin/env bash
# The table by tidegate.hpp. C++ has no reader of JSON at hand, so it gets the workload as lines.
set -eu
CXX=${CXX:-c++}
command -v "$CXX" >/dev/null || { echo "no C++ compiler" >&2; exit 77; }
out=$PWD/target/overload
mkdir -p "$out"
"$CXX" -std=c++17 -Wall -Wextra -Werror -O1 "-I$TIDEGATE_INCLUDE" tests/overload/programs/table.cpp -o "$out/cpp" \
    "-L$TIDEGATE_LIBRARIES" "-Wl,-rpath,$TIDEGATE_LIBRARIES" -ltidegate >&2
"${PYTHON:-python3}" - "$1" <<'LINES' | "$out/cpp"
import json, sys
workload = json.load(open(sys.argv[1], encoding="utf-8"))
for load in workload["loads"]:
    print("load", load["load"])
    for line in workload["file"]:
        print("file", line)
    print("gate", workload["gate"])
    for event in load["events"]:
        what = next(word for word in ("arrive", "leave", "close") if word in event)
        rest = [event[key] for key in ("path", "weight", "outcome") if key in event]
        print(what, event["at_ms"], event[what], *rest)
LINES
