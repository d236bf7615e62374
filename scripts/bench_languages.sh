#!/usr/bin/env bash
# The figures of the languages behind the C ABI, each by its own harness: a file for each in target/bench-languages,
# which `make bench` takes into target/bench.json.
set -u
cd "$(dirname "$0")/.."
folder=$PWD/target/bench-languages
rm -rf "$folder" && mkdir -p "$folder"
code=0
for script in bindings/*/bench.sh; do
    [ -x "$script" ] || continue
    name=$(basename "$(dirname "$script")")
    said=$("$script" "$folder/$name.json" 2>&1)
    case $? in
        0) ;;
        77) echo "SKIPPED  the figures of $name: $(tail -1 <<<"$said")" >&2 ;;
        *) echo "$said" >&2 && code=1 ;;
    esac
done
exit $code
