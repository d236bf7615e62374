# Sourced by tests/c/run.sh and tests/cpp/run.sh, after steps.sh: what both test against.
#
#   $tree    what `make install` installs, moved since: programs in C and C++ find it there
#   $hooks   a library with checked arithmetic and the test hooks (clock, panic), never installed
#   $out     a folder for what is compiled
#   $warn    flags that make a compiler strict

target=$PWD/target/c
tree=$target/tree
hooks=$target/hooks
out=$target/tests
warn="-Wall -Wextra -Werror -pedantic"
CC=${CC:-cc}
CXX=${CXX:-c++}

prepare() {
    rm -rf "$tree" "$target/installed"
    mkdir -p "$hooks" "$out"
    PREFIX=/opt/tidegate DESTDIR=$target/installed scripts/install.sh &&
        mv "$target/installed/opt/tidegate" "$tree" &&
        cargo build --locked --quiet -p tidegate-c --features test-hooks &&
        cp target/debug/libtidegate.so "$hooks/libtidegate.so.1" &&
        ln -sfn libtidegate.so.1 "$hooks/libtidegate.so" &&
        "${PYTHON:-python3}" tests/c/vector_lines.py tests/vectors >"$out/vectors.txt"
}

# against FOLDER: what a compiler needs to use the library in it, whether it is installed or not.
against() {
    echo "-I$tree/include -L$1 -Wl,-rpath,$1 -ltidegate -lpthread -ldl"
}

# What a compiler does with an empty program: whether this machine can build and run such a thing.
compiles() {
    local compiler=$1 program=$out/probe
    shift
    echo 'int main(void) { return 0; }' >"$out/probe.c"
    case $compiler in *++*) set -- -x c++ "$@" ;; esac
    "$compiler" "$@" "$out/probe.c" -o "$program" >/dev/null 2>&1 && "$program" >/dev/null 2>&1
}

has() {
    command -v "$1" >/dev/null 2>&1
}
