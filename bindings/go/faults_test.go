//go:build tidegate_flags

package tidegate_test

import (
	"errors"
	"testing"

	"tidegate"
	"tidegate/internal/hooks"
)

func TestAFaultInsideTheLibraryIsAnError(t *testing.T) {
	gate := made(t, 1)
	hooks.PanicNext()
	if _, err := gate.TryAdmit(tidegate.Critical, 1); !errors.Is(err, tidegate.ErrFault) {
		t.Error(err)
	}
	equal(t, admitted(t, gate, tidegate.Critical, 1).Release(), nil, "it goes on")
}

func TestNoRoomForAnotherPermit(t *testing.T) {
	gate := made(t, 1)
	hooks.FullNext()
	if _, err := gate.TryAdmit(tidegate.Critical, 1); !errors.Is(err, tidegate.ErrExhausted) {
		t.Error(err)
	}
	equal(t, gate.InFlight(), 0, "the admission was taken back")
}

func TestAGateThatNobodyMade(t *testing.T) {
	var gate tidegate.Gate
	if _, err := gate.TryAdmit(tidegate.Critical, 1); !errors.Is(err, tidegate.ErrNil) {
		t.Error(err)
	}
	if err := gate.SetLimit(1); !errors.Is(err, tidegate.ErrNil) {
		t.Error(err)
	}
}
