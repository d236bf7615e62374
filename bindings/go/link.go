//go:build !tidegate_flags

package tidegate

// #cgo pkg-config: tidegate
import "C"
