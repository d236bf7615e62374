# Sourced in the repository's root: how Go builds here. What is built goes to target/go; modules that are downloaded
# are in Go's own cache, as for any other program in Go.

export GOCACHE=$PWD/target/go/cache GOFLAGS="${GOFLAGS:-} -mod=readonly" GOTOOLCHAIN=local CGO_ENABLED=1
unset GOWORK

# Whether Go is there, with what it needs; $missing says what is not.
go_at_hand() {
    missing=""
    command -v go >/dev/null || missing="Go is not installed"
    [ -n "$missing" ] || (cd bindings/go && go list -m >/dev/null 2>&1) || missing="this Go is too old: $(go version)"
    [ -n "$missing" ] || command -v "$(go env CC)" >/dev/null || missing="cgo needs a C compiler"
    [ -z "$missing" ]
}

# against_hooks INCLUDE LIBRARIES: with -tags tidegate_flags, Go finds header and library there.
against_hooks() {
    export CGO_CFLAGS="-O2 -I$1" CGO_LDFLAGS="-L$2 -Wl,-rpath,$2"
}
