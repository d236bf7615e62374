#!/usr/bin/env bash
# The tests of tidegate.hpp: `make polyglot ARGS=cpp`.

set -u
cd "$(dirname "$0")/../.."
. scripts/steps.sh
. scripts/native.sh

out=$target/tests-cpp
mkdir -p "$out"

names="words gates permits guards files adaptive"

# build NAME FOLDER-OF-LIBRARY FLAGS...: tests/cpp/NAME.cpp, with what all tests share, as $out/NAME.
build() {
    local name=$1 library=$2
    shift 2
    # shellcheck disable=SC2046,SC2086 # flags are words
    "$CXX" -std=c++17 $warn -Wshadow -Wconversion -g -O1 "$@" -o "$out/$name" $(against "$library")
}

# All tests are one program: the header stands in each of its units.
build_tests() {
    local name=$1
    shift
    # shellcheck disable=SC2046,SC2086
    build "$name" "$hooks" "$@" $(printf 'tests/cpp/%s.cpp ' check $names)
}

vectors() {
    "$@" <"$out/vectors.txt"
}

# --- the header --------------------------------------------------------------------------------

# The header alone and twice; with and without exceptions. It compiles nothing else, so it is quick.
header() {
    # shellcheck disable=SC2086 # flags are words
    printf '#include <tidegate.hpp>\n#include <tidegate.hpp>\nint main() {}\n' |
        "$@" $warn -Wshadow -Wconversion "-I$tree/include" -x c++ -fsyntax-only -
}

headers() {
    local compiler=$1 standard
    for standard in c++17 c++20 c++23; do
        if compiles "$compiler" "-std=$standard"; then
            step "header, $compiler -std=$standard" header "$compiler" "-std=$standard"
            step "header, $compiler -std=$standard, no exceptions" \
                header "$compiler" "-std=$standard" -fno-exceptions -fno-rtti
        else
            skip "header, $compiler -std=$standard" "this compiler does not know it"
        fi
    done
}

# Every mistake of misuse.cpp is refused, and the program without one is not.
misuse() {
    local try="$CXX -std=c++17 -Werror=unused-result -I$tree/include -fsyntax-only tests/cpp/misuse.cpp" number
    $try -DMISUSE=0 || return 1
    for number in $(sed -n 's/^#\(el\)\?if MISUSE == //p' tests/cpp/misuse.cpp); do
        if $try "-DMISUSE=$number" 2>/dev/null; then
            echo "mistake $number compiles"
            return 1
        fi
    done
}

# --- other libraries and trees -----------------------------------------------------------------

another_version() {
    "$CC" -shared -fPIC tests/cpp/other_abi.c -o "$out/other_abi.so" &&
        env LD_PRELOAD="$out/other_abi.so" "$out/consumer/consumer" |
        grep 'compiled with tidegate.h of ABI version 1 and runs with a libtidegate of ABI version 999'
}

# Copied out of the repository, so that only the installed tree is there to be found.
consumer() {
    local folder
    folder=$(mktemp -d)
    rm -rf "$out/consumer"
    cp -R tests/cpp/consumer/. "$folder" &&
        cmake -S "$folder" -B "$out/consumer" -DCMAKE_PREFIX_PATH="$tree" -DCMAKE_CXX_COMPILER="$CXX" &&
        cmake --build "$out/consumer" && "$out/consumer/consumer" | grep "^1 inside, then gate 'db' full: 1 of 1"
    local code=$?
    rm -rf "$folder"
    return $code
}

# --- all of it ---------------------------------------------------------------------------------

if ! has "$CXX"; then
    skip "all of it" "no C++ compiler"
    summary cpp
    exit
fi

step "the library builds and installs" prepare
[ "$failed" -eq 0 ] || { summary cpp; exit 1; }

headers "$CXX"
if has clang++; then
    headers clang++
else
    skip "header, clang++" "not installed"
fi
step "what must not compile does not" misuse

step "build the tests" build_tests tests
step "build vectors" build vectors "$hooks" tests/cpp/vectors.cpp
step "build forks" build forks "$tree/lib" tests/cpp/check.cpp tests/cpp/forks.cpp
step "build without exceptions" build no_exceptions "$tree/lib" -fno-exceptions -fno-rtti \
    tests/cpp/no_exceptions.cpp
program tests "$out/tests"
program forks "$out/forks"
program vectors vectors "$out/vectors"
step "without exceptions" "$out/no_exceptions"

sanitizers="-fsanitize=address,undefined -fno-sanitize-recover=all"
# shellcheck disable=SC2086 # flags are words
if compiles "$CXX" $sanitizers; then
    step "build the tests, sanitized" build_tests tests-sanitized $sanitizers
    program "tests, sanitized" env TIDEGATE_TEST_PERCENT=20 "$out/tests-sanitized"
else
    skip "the sanitizers" "$CXX cannot build or run a program with them"
fi
if has valgrind; then
    # What a permit keeps of the library when its gate is gone is found by the next gate.
    program "tests, valgrind" env TIDEGATE_TEST_PERCENT=2 \
        valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite,indirect "$out/tests"
else
    skip "valgrind" "not installed"
fi

if has cmake; then
    step "a program that uses CMake" consumer
    step "a library of another version is told" another_version
else
    skip "a program that uses CMake" "not installed"
fi

summary cpp
