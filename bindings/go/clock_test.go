//go:build tidegate_flags

package tidegate_test

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"tidegate"
	"tidegate/internal/hooks"
)

// What a shed says of its future, on the manual clock.
func TestRetryAfter(t *testing.T) {
	hooks.SetClock(0)
	gate := made(t, 1000, tidegate.WithRate(tidegate.Rate{Count: 6, Per: time.Minute, Burst: 1}))
	permit := admitted(t, gate, tidegate.Critical, 1)
	shedOf := func(weight int) *tidegate.Shed {
		_, err := gate.TryAdmit(tidegate.Critical, weight)
		var shed *tidegate.Shed
		if !errors.As(err, &shed) {
			t.Fatal(err)
		}
		return shed
	}
	headers := func(shed *tidegate.Shed, least, most int) {
		t.Helper()
		seen := []int{}
		for range 2000 {
			seconds, err := strconv.Atoi(shed.RetryAfterHeader())
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, seconds)
		}
		equal(t, slices.Min(seen), least, "the shortest header")
		equal(t, slices.Max(seen), most, "the longest header")
	}
	hooks.SetClock(500_000_000)
	shed := shedOf(1)
	equal(t, shed.RetryAfter(), 9500*time.Millisecond, "retry after")
	equal(t, shed.Error(), "gate 'db' over its rate of 6/min (burst 1): 1 of 1000 in flight (priority critical); "+
		"retry in about 9.5 s", "text")
	headers(shed, 10, 15)
	equal(t, shedOf(2).RetryAfter(), tidegate.Never, "more than the burst")
	headers(shedOf(2), 60, 90)
	equal(t, permit.Release(), nil, "release")
	equal(t, gate.Close(), nil, "close")
	equal(t, shedOf(1).RetryAfter(), tidegate.Never, "closed")
	headers(shedOf(1), 1, 2)
	headers(&tidegate.Shed{Reason: tidegate.ReasonRate}, 1, 2)
}

func TestLatency(t *testing.T) {
	hooks.SetClock(0)
	gate := made(t, 1, tidegate.WithTiming())
	wait, err := gate.Latency(tidegate.Critical, 0.5)
	equal(t, wait, tidegate.Unknown, "before anything")
	equal(t, err, nil, "error")
	permit := admitted(t, gate, tidegate.Critical, 1)
	hooks.SetClock(1_000_000)
	_ = permit.Release()
	if wait, err = gate.Latency(tidegate.Critical, 1); err != nil || wait < time.Millisecond*98/100 || wait > time.Millisecond*102/100 {
		t.Error(wait, err)
	}
}
