#!/usr/bin/env bash
# Installs the C and C++ library as its users expect to find it: `make install PREFIX=/usr/local`.
#
#   PREFIX   where it will be used from; what is installed finds itself, also after a move
#   LIBDIR   of the libraries, within PREFIX (lib)
#   DESTDIR  put in front of PREFIX, for packagers
#   BUILT    the folder with the libraries; they are built if it is not given
set -euo pipefail
cd "$(dirname "$0")/.."

prefix=${PREFIX:-/usr/local}
libdir=${LIBDIR:-lib}
built=${BUILT:-}

case $libdir in
/*)
    echo "LIBDIR is within PREFIX, for example lib64; got $libdir" >&2
    exit 1
    ;;
esac

if [ -z "$built" ]; then
    cargo build --locked --release -p tidegate-c
    built=target/release
fi

version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
abi=$(sed -n 's/^#define TIDEGATE_ABI_VERSION //p' include/tidegate.h)
IFS=. read -r major minor _ <<<"$version"

root=${DESTDIR:-}$prefix
lib=$root/$libdir
# Not mkdir: the folders are for everybody, whatever the umask.
install -d "$root/include" "$lib/pkgconfig" "$lib/cmake/tidegate"
prefix_from_lib=$(realpath -ms --relative-to="/$libdir" /)

fill() {
    sed -e "s|@VERSION@|$version|g; s|@MAJOR@|$major|g; s|@MINOR@|$minor|g; s|@ABI@|$abi|g" \
        -e "s|@POINTER@|$(($(getconf LONG_BIT) / 8))|g" \
        -e "s|@PREFIX_FROM_LIB@|$prefix_from_lib|g; s|@PREFIX_FROM_PC@|../$prefix_from_lib|g" "$1" >"$2"
    chmod 644 "$2"
}

# The static library as one object in which only our functions are global: a program that links a second
# library with Rust in it would otherwise find Rust's own twice. What the compiler left of its own format goes.
static_library() {
    local object=$1/tidegate.o keep=bindings/c/symbols.txt roots
    mapfile -t roots < <(sed 's/^/--undefined=/' "$keep")
    ld -r --gc-sections "${roots[@]}" "$built/libtidegate.a" -o "$object"
    objcopy --keep-global-symbols="$keep" --remove-section=.llvmbc --remove-section=.llvmcmd "$object"
    rm -f "$1/libtidegate.a"
    ar crs "$1/libtidegate.a" "$object"
    rm "$object"
    chmod 644 "$1/libtidegate.a"
}

install -m 644 include/tidegate.h "$root/include/"
if [ -e include/tidegate.hpp ]; then
    install -m 644 include/tidegate.hpp "$root/include/"
fi
# The real name carries the version, the soname the ABI that programs ask for; the short one is the linker's.
real=libtidegate.so.$abi.$version
install -m 755 "$built/libtidegate.so" "$lib/$real"
ln -sfn "$real" "$lib/libtidegate.so.$abi"
ln -sfn "libtidegate.so.$abi" "$lib/libtidegate.so"
static_library "$lib"
fill bindings/c/packaging/tidegate.pc.in "$lib/pkgconfig/tidegate.pc"
fill bindings/c/packaging/tidegateConfig.cmake.in "$lib/cmake/tidegate/tidegateConfig.cmake"
fill bindings/c/packaging/tidegateConfigVersion.cmake.in "$lib/cmake/tidegate/tidegateConfigVersion.cmake"
