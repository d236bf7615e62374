package tidegate

// #include "native.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
)

// What a call can be wrong in. An error has changed nothing, unless its text says otherwise.
var (
	// ErrShed is in every [Shed].
	ErrShed = errors.New("tidegate: shed")
	// ErrArgument: a value is outside its rule.
	ErrArgument = errors.New("an argument is outside its rule")
	// ErrStale: the permit was released before.
	ErrStale = errors.New("the permit was released before")
	// ErrConfig: a configuration contradicts itself, or a file breaks a rule.
	ErrConfig = errors.New("the configuration is wrong")
	// ErrExhausted: 2^24 permits of the gate are out, or there is no memory; the admission was taken back.
	ErrExhausted = errors.New("no room for another permit")
	// ErrVersion: the library is not the one that this package was compiled for.
	ErrVersion = errors.New("another version of libtidegate")
	// ErrFault: a fault inside the library, which was caught. Please report it.
	ErrFault = errors.New("a fault inside libtidegate")
	// ErrNil: a gate that was not made by this package's functions.
	ErrNil = errors.New("no gate: make one with tidegate.New")
)

// Error is what was wrong with a call: the value and the rule that it broke. [errors.Is] finds what kind it is.
type Error struct {
	kind    error
	message string
}

// Error is the message, for people.
func (e *Error) Error() string { return "tidegate: " + e.message }

// Unwrap is the kind: ErrArgument, ErrConfig and the like.
func (e *Error) Unwrap() error { return e.kind }

func argument(format string, values ...any) error {
	return &Error{ErrArgument, fmt.Sprintf(format, values...)}
}

func statusText(status C.tidegate_status) string { return C.GoString(C.tidegate_status_str(status)) }

// failed is the error of a status below 0; message may be empty.
func failed(status C.tidegate_status, message string) error {
	if message == "" {
		message = statusText(status)
	}
	return &Error{kindOf(status), message}
}

func kindOf(status C.tidegate_status) error {
	switch status {
	case C.TIDEGATE_ERR_NULL:
		return ErrNil
	case C.TIDEGATE_ERR_ARGUMENT:
		return ErrArgument
	case C.TIDEGATE_ERR_STALE:
		return ErrStale
	case C.TIDEGATE_ERR_VERSION:
		return ErrVersion
	case C.TIDEGATE_ERR_CONFIG:
		return ErrConfig
	case C.TIDEGATE_ERR_EXHAUSTED:
		return ErrExhausted
	default:
		return ErrFault
	}
}

// done is nil for a status of 0.
func done(status C.tidegate_status) error {
	if status == C.TIDEGATE_ADMITTED {
		return nil
	}
	return failed(status, "")
}

const largest = 1<<31 - 1

// outside is the error of a number that breaks its rule.
func outside(what string, least, got int) error {
	return argument("%s must be a whole number from %d to %d, got %d", what, least, largest, got)
}

// library says whether the library that was loaded is the one this was compiled for. Asked before anything else.
var library = sync.OnceValue(func() error {
	if got := C.tidegate_abi_version(); got != C.TIDEGATE_ABI_VERSION {
		return &Error{ErrVersion, fmt.Sprintf(
			"this program was compiled with tidegate.h of ABI version %d and runs with a libtidegate of ABI version %d: "+
				"install both from one release", C.TIDEGATE_ABI_VERSION, got)}
	}
	return nil
})

// OutcomeOf says what an error tells about the resource: a timeout is Overload; a cancellation, and the Shed of
// another gate, Ignore; no error, and any other, Success: the resource answered.
func OutcomeOf(err error) Outcome {
	var timeout net.Error
	switch {
	case err == nil:
		return Success
	case errors.Is(err, context.Canceled), errors.Is(err, ErrShed):
		return Ignore
	case errors.As(err, &timeout) && timeout.Timeout(): // as the errors of context and os are, too
		return Overload
	default:
		return Success
	}
}
