#!/usr/bin/env bash
# Format and lints of the Go module. Exit code 77: this machine lacks something, which is said.
set -eu
cd "$(dirname "$0")/../.."
. bindings/go/environment.sh
go_at_hand || { echo "$missing"; exit 77; }
cargo build --locked --quiet -p tidegate-c
mkdir -p target/go/link # under the name of its soname
ln -sfn ../../debug/libtidegate.so target/go/link/libtidegate.so
ln -sfn ../../debug/libtidegate.so target/go/link/libtidegate.so.1
against_hooks "$PWD/include" "$PWD/target/go/link"

bad=$(gofmt -l bindings/go)
[ -z "$bad" ] || { echo "not as gofmt has it: $bad"; exit 1; }
cd bindings/go
go vet -tags tidegate_flags ./...
cd integration
go mod download || { echo "the linter cannot be downloaded"; exit 77; }
go vet -tags tidegate_flags ./...
go build -o ../../../target/go/staticcheck honnef.co/go/tools/cmd/staticcheck
../../../target/go/staticcheck -checks all,-ST1000 -tags tidegate_flags ./...
cd ..
../../target/go/staticcheck -checks all,-ST1000 -tags tidegate_flags ./...
