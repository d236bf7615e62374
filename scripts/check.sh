#!/usr/bin/env bash
# Format, lints, types, docs and the rules of the house. `make check` sets up .venv and calls this.

set -u
cd "$(dirname "$0")/.."
. scripts/steps.sh

export PYO3_PYTHON="$PWD/.venv/bin/python"
# Also what is not tracked yet, without what is ignored.
mapfile -t FILES < <(git ls-files --cached --others --exclude-standard 2>/dev/null)

# --- the steps that need more than a command ---------------------------------------------------

# The core stands alone: no binding, no header generator and no runtime among what it is built from.
core_stands_alone() {
    local tree
    tree=$(cargo tree --locked -e normal,build --prefix none -p tidegate) || return 1
    ! grep -E '^(pyo3|cbindgen|tokio)' <<<"$tree"
}

# A path of one machine is of no use on another.
no_machine_paths() {
    ! grep -nIE '(^|[^[:alnum:]_.-])/(home|root|work)/' -- "${FILES[@]}" | grep -v '^scripts/check.sh:'
}

has_target() {
    [ -d "$(rustc --print sysroot)/lib/rustlib/$1/lib" ]
}

# --- Rust --------------------------------------------------------------------------------------

step "cargo fmt" cargo fmt --all --check
step "clippy" cargo clippy --locked --quiet --workspace --all-targets -- -D warnings
# The models leave out forks, waiting and publishing, and some methods need no self there.
step "clippy, loom" env RUSTFLAGS="--cfg tidegate_loom" \
    cargo clippy --locked --quiet --lib --target-dir target/loom -- -D warnings -A clippy::unused_self
step "rustdoc" env RUSTDOCFLAGS="-D warnings" cargo doc --locked --quiet --workspace --no-deps
# The workspace switches features on that whoever takes the core alone may not have.
step "rustdoc, the core without features" env RUSTDOCFLAGS="-D warnings" cargo doc --locked --quiet -p tidegate --no-deps
step "the core stands alone" core_stands_alone

# Without the target's standard library this cannot be checked: `rustup target add TARGET` brings it.
for target in aarch64-unknown-linux-gnu x86_64-pc-windows-gnu aarch64-apple-darwin; do
    if has_target "$target"; then
        step "cargo check, $target" cargo check --locked --quiet -p tidegate --target "$target"
    else
        skip "cargo check, $target" "its standard library is not installed"
    fi
done

# --- C and C++ ---------------------------------------------------------------------------------

step "the header and the list of symbols are as generated" scripts/header.sh --check
mapfile -t C_FILES < <(printf '%s\n' "${FILES[@]}" | grep -E '\.(c|h|cpp|hpp)$' | grep -v '^include/tidegate\.h$')
if [ "${#C_FILES[@]}" -gt 0 ]; then
    step "clang-format" .venv/bin/clang-format --dry-run --Werror "${C_FILES[@]}"
else
    skip "clang-format" "not a git checkout"
fi

# --- the other languages -------------------------------------------------------------------------

# Each has its own script, which says what is missing with exit code 77.
for script in bindings/*/check.sh; do
    [ -x "$script" ] || continue
    name=$(basename "$(dirname "$script")")
    if said=$("$script" 2>&1); then
        step "format and lints, $name" true
    elif [ $? -eq 77 ]; then
        skip "format and lints, $name" "$(tail -1 <<<"$said")"
    else
        step "format and lints, $name" sh -c 'echo "$1"; exit 1' sh "$said"
    fi
done

# --- Python ------------------------------------------------------------------------------------

BIN=.venv/bin
step "ruff format" $BIN/ruff format --check .
step "ruff" $BIN/ruff check .
step "mypy" $BIN/mypy --strict python/tidegate tests/typing
# Django's parts are imported, which needs settings: its defaults.
step "stubtest" env DJANGO_SETTINGS_MODULE=django.conf.global_settings \
    $BIN/python -m mypy.stubtest tidegate --allowlist scripts/stubtest-allowlist.txt
step "pyright" $BIN/pyright --pythonpath $BIN/python python/tidegate tests/typing

step "docs/leak-matrix.md has the tests' cells" $BIN/python scripts/leak_matrix.py --check

# --- the repository ----------------------------------------------------------------------------

if [ "${#FILES[@]}" -gt 0 ]; then
    step "no paths of this machine" no_machine_paths
else
    skip "no paths of this machine" "not a git checkout"
fi

# Small files are easier to read; this is advice, not a rule.
for file in "${FILES[@]}"; do
    case $file in
        *.rs | *.py | *.pyi | *.sh | *.c | *.cpp | *.h | *.hpp | *.go | *.java | *.js | *.ts)
            [ -f "$file" ] && lines=$(wc -l <"$file") && [ "$lines" -gt 500 ] &&
                echo "note     $file has $lines lines"
            ;;
    esac
done

summary check
