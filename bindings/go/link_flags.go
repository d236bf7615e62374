//go:build tidegate_flags

package tidegate

// Without pkg-config: CGO_CFLAGS and CGO_LDFLAGS say where header and library are.

// #cgo LDFLAGS: -ltidegate
import "C"
