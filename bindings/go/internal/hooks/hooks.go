//go:build tidegate_flags

// Package hooks is what only a library that was built with the feature `test-hooks` has: see tests/c/tidegate_test.h.
package hooks

// #include <stdint.h>
// void tidegate_test_set_clock(uint64_t now_ns);
// void tidegate_test_panic_next(void);
// void tidegate_test_full_next(void);
import "C"

// SetClock sets the time, and has gates that are made from now on go by it.
func SetClock(ns uint64) { C.tidegate_test_set_clock(C.uint64_t(ns)) }

// PanicNext has the next call of any thread panic inside the library.
func PanicNext() { C.tidegate_test_panic_next() }

// FullNext has the next permit find no room.
func FullNext() { C.tidegate_test_full_next() }
