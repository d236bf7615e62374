#!/usr/bin/env bash
# The tests of the C ABI: `make polyglot ARGS=c`. TIDEGATE_FUZZ_STEPS: the length of each random program.

set -u
cd "$(dirname "$0")/../.."
. scripts/steps.sh
. scripts/native.sh

export RUST_BACKTRACE=0 # a test makes the library panic, on purpose

# --- what the programs are built and run with --------------------------------------------------

# build NAME FOLDER-OF-LIBRARY FLAGS...: tests/c/NAME.c, against a library, as $out/NAME.
build() {
    local name=$1 library=$2
    shift 2
    # shellcheck disable=SC2046,SC2086 # flags are words
    "$CC" -std=c11 $warn -Wshadow -g -O1 "$@" "tests/c/${name%%-*}.c" -o "$out/$name" $(against "$library")
}

fuzz() {
    for seed in 1 2 3 4; do
        "$1" "$seed" "${TIDEGATE_FUZZ_STEPS:-200000}" || return 1
    done
}

vectors() {
    "$@" <"$out/vectors.txt"
}

# --- what is installed -------------------------------------------------------------------------

soname_and_flags() {
    readelf -d "$tree/lib/libtidegate.so" | grep -q 'SONAME.*\[libtidegate\.so\.1\]' &&
        readelf -d "$tree/lib/libtidegate.so" | grep -q 'NODELETE' &&
        [ "$(readlink "$tree/lib/libtidegate.so")" = libtidegate.so.1 ] &&
        [ -e "$tree/lib/libtidegate.so.1" ] && [ -e "$tree/lib/libtidegate.a" ] &&
        grep -q '^#define TIDEGATE_ABI_VERSION 1$' "$tree/include/tidegate.h"
}

# The names that nm lists, without those of an archive's members.
names() {
    "$@" | grep -v ':$' | cut -d' ' -f1 | LC_ALL=C sort
}

exports_nothing_else() {
    names nm --dynamic --defined-only --format=posix "$tree/lib/libtidegate.so" | diff -u bindings/c/symbols.txt -
}

another_libdir() {
    local root=$target/packaged
    rm -rf "$root"
    (umask 077 && BUILT=target/release PREFIX=/usr LIBDIR=lib/some-triplet DESTDIR=$root scripts/install.sh) || return 1
    local pc=$root/usr/lib/some-triplet/pkgconfig
    [ "$(realpath "$(PKG_CONFIG_PATH=$pc pkg-config --variable=includedir tidegate)")" = \
        "$(realpath "$root/usr/include")" ] || return 1
    # Within the prefix only; and for everybody, whatever the umask of who installs.
    ! BUILT=target/release PREFIX=/usr LIBDIR=/usr/lib DESTDIR=$root scripts/install.sh &&
        [ ! -e "$root/usr/usr" ] && [ -z "$(find "$root/usr" -type d ! -perm -755)" ]
}

only_ours_is_global() {
    names nm --extern-only --defined-only --format=posix "$tree/lib/libtidegate.a" | diff -u bindings/c/symbols.txt -
}

# Two static libraries with Rust in them, in one program.
beside_other_rust() {
    rustc --edition 2024 --crate-type staticlib -O tests/c/beside/other.rs -o "$out/libother.a" || return 1
    # shellcheck disable=SC2086 # flags are words
    "$CC" -std=c11 $warn -I"$tree/include" tests/c/beside/main.c -o "$out/beside" \
        "$out/libother.a" "$tree/lib/libtidegate.a" -lpthread -ldl -lm && "$out/beside"
}

# Copied out of the repository, so that only the installed tree is there to be found.
consumer() {
    local folder
    folder=$(mktemp -d)
    cp -R "tests/c/consumer-$1/." tests/c/consumer.c "$folder"
    (cd "$folder" && "$1") # the function that builds and runs it
    local code=$?
    rm -rf "$folder"
    return $code
}

pkgconfig() {
    PKG_CONFIG_PATH=$tree/lib/pkgconfig make && ./shared && ./static
}

# cmake_builds PREFIX
cmake_builds() {
    cmake -S . -B built -DCMAKE_PREFIX_PATH="$1" && cmake --build built && built/consumer
}

# Through a link to its libraries, as /lib is one where it belongs to /usr.
cmake-shared() {
    mkdir linked && ln -s "$tree/lib" linked/lib && cmake_builds "$PWD/linked"
}

cmake-static() {
    cmake_builds "$tree" && ! ldd built/consumer | grep -q tidegate
}

# The program in docs/c.md, as it stands there.
documented() {
    sed -n '/^```c$/,/^```$/{/^```/!p}' docs/c.md >"$out/documented.c"
    # shellcheck disable=SC2046,SC2086 # flags are words
    "$CC" -std=c11 $warn "$out/documented.c" -o "$out/documented" $(against "$tree/lib") && "$out/documented"
}

# --- the header --------------------------------------------------------------------------------

# header COMPILER STANDARD FLAGS...: alone, twice, in two units.
header() {
    local compiler=$1 standard=$2
    shift 2
    # shellcheck disable=SC2046,SC2086 # flags are words
    "$compiler" "$@" "-std=$standard" $warn -Wshadow -Wconversion tests/c/header_one.c tests/c/header_two.c \
        -o "$out/header" $(against "$tree/lib") && "$out/header"
}

headers() {
    local compiler=$1 standard language=$2
    shift 2
    for standard in "$@"; do
        if compiles "$compiler" "-std=$standard"; then
            # shellcheck disable=SC2086 # no language is no word
            step "header, $compiler -std=$standard" header "$compiler" "$standard" $language
        else
            skip "header, $compiler -std=$standard" "this compiler does not know it"
        fi
    done
}

# --- all of it ---------------------------------------------------------------------------------

step "the library builds and installs" prepare
[ "$failed" -eq 0 ] || { summary c; exit 1; }

step "soname, unloading, links" soname_and_flags
step "the static library's symbols are those of symbols.txt" only_ours_is_global
step "two static libraries with Rust in one program" beside_other_rust
step "the exported symbols are those of symbols.txt" exports_nothing_else

headers "$CC" "" c99 c11 c17 c2x
headers "$CXX" "-x c++" c++17 c++20 c++2b
for compiler in clang clang++; do
    if ! has $compiler; then
        skip "header, $compiler" "not installed"
    elif [ $compiler = clang ]; then
        headers clang "" c99 c11 c17 c2x
    else
        headers clang++ "-x c++" c++17 c++20 c++2b
    fi
done

step "the program in docs/c.md" documented
for name in basics numbers permits gates threads fork dlopen fuzz; do
    step "build $name" build $name "$tree/lib"
done
for name in vectors faults adaptive; do
    step "build $name" build $name "$hooks"
done
for name in basics numbers permits gates threads fork; do
    program $name "$out/$name"
done
program dlopen "$out/dlopen" "$tree/lib/libtidegate.so"
program vectors vectors "$out/vectors"
program faults "$out/faults"
program adaptive "$out/adaptive"
program fuzz fuzz "$out/fuzz"

sanitizers="-fsanitize=address,undefined -fno-sanitize-recover=all"
# shellcheck disable=SC2086 # flags are words
if compiles "$CC" $sanitizers; then
    for name in basics numbers permits gates threads fork vectors faults adaptive fuzz; do
        step "build $name, sanitized" build $name-sanitized "$hooks" $sanitizers
    done
    for name in basics numbers permits gates threads fork faults adaptive; do
        program "$name, sanitized" env TIDEGATE_TEST_PERCENT=20 "$out/$name-sanitized"
    done
    program "vectors, sanitized" vectors "$out/vectors-sanitized"
    program "fuzz, sanitized" "$out/fuzz-sanitized" 5 100000
else
    skip "the sanitizers" "$CC cannot build or run a program with them"
fi

if has valgrind; then
    memcheck="valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite,indirect"
    # shellcheck disable=SC2086 # flags are words
    for name in basics numbers permits gates threads; do
        program "$name, valgrind" env TIDEGATE_TEST_PERCENT=2 $memcheck "$out/$name"
    done
    # shellcheck disable=SC2086
    program "vectors, valgrind" vectors $memcheck "$out/vectors"
    # shellcheck disable=SC2086
    program "fuzz, valgrind" $memcheck "$out/fuzz" 6 5000
else
    skip "valgrind" "not installed"
fi

if has pkg-config; then
    step "a program that uses pkg-config" consumer pkgconfig
    step "an installation as packagers make it" another_libdir
else
    skip "programs that use pkg-config" "not installed"
fi
if has cmake; then
    step "a program that uses CMake, shared" consumer cmake-shared
    step "a program that uses CMake, static" consumer cmake-static
else
    skip "programs that use CMake" "not installed"
fi

summary c
