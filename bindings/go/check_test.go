package tidegate_test

import (
	"testing"

	"tidegate"
)

// made is the gate of a test.
func made(t testing.TB, limit int, options ...tidegate.Option) *tidegate.Gate {
	t.Helper()
	gate, err := tidegate.New("db", limit, options...)
	if err != nil {
		t.Fatal(err)
	}
	return gate
}

func admitted(t testing.TB, gate *tidegate.Gate, priority tidegate.Priority, weight int) *tidegate.Permit {
	t.Helper()
	permit, err := gate.TryAdmit(priority, weight)
	if err != nil {
		t.Fatal(err)
	}
	return permit
}

func statsOf(t testing.TB, gate *tidegate.Gate) tidegate.Stats {
	t.Helper()
	stats, err := gate.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return stats
}

func equal[T comparable](t testing.TB, got, wanted T, what string) {
	t.Helper()
	if got != wanted {
		t.Errorf("%s: got %v, expected %v", what, got, wanted)
	}
}
