package tidegate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"tidegate"
)

func TestAShedSaysWhatItIs(t *testing.T) {
	gate := made(t, 1)
	permit := admitted(t, gate, tidegate.Default, 1)
	equal(t, permit.Priority(), tidegate.Critical, "the default priority")

	_, err := gate.TryAdmit(tidegate.Sheddable, 1)
	wrapped := fmt.Errorf("no rows: %w", err)
	var shed *tidegate.Shed
	if !errors.As(wrapped, &shed) || !errors.Is(wrapped, tidegate.ErrShed) || !errors.Is(wrapped, tidegate.ReasonLimit) {
		t.Fatal(err)
	}
	if errors.Is(wrapped, tidegate.ReasonRate) || errors.Is(wrapped, tidegate.ErrArgument) {
		t.Error("it is something else, too")
	}
	equal(t, shed.Reason, tidegate.ReasonLimit, "reason")
	equal(t, shed.Priority, tidegate.Sheddable, "priority")
	runtime.KeepAlive(permit)
}

func TestItsNumbersAndText(t *testing.T) {
	gate := made(t, 20)
	permit := admitted(t, gate, tidegate.Critical, 20)
	_, err := gate.TryAdmit(tidegate.Sheddable, 3)
	var shed *tidegate.Shed
	if !errors.As(err, &shed) {
		t.Fatal(err)
	}
	equal(t, shed.InFlight, 20, "in flight")
	equal(t, shed.Limit, 20, "limit")
	equal(t, shed.Weight, 3, "weight")
	equal(t, shed.Gate(), gate, "gate")
	equal(t, shed.RetryAfter(), tidegate.Unknown, "retry after")
	equal(t, shed.Error(), "gate 'db' full: 20 of 20 in flight (priority sheddable)", "text")

	_, err = gate.TryAdmit(tidegate.Default, 21)
	equal(t, err.Error(), "gate 'db' full: 20 of 20 in flight (priority critical); no retry can succeed", "text")
	if err := gate.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = gate.TryAdmit(tidegate.Critical, 1)
	equal(t, err.Error(), "gate 'db' is closed", "text")
	runtime.KeepAlive(permit)
}

func TestAPermitIsReleasedOnce(t *testing.T) {
	gate := made(t, 1)
	permit := admitted(t, gate, tidegate.CriticalPlus, 1)
	if err := permit.ReleaseAs(7); !errors.Is(err, tidegate.ErrArgument) || permit.Released() {
		t.Error("a number that is no outcome has to leave it held", err)
	}
	if err := permit.ReleaseAs(tidegate.Overload); err != nil || !permit.Released() {
		t.Error(err)
	}
	if err := permit.Release(); !errors.Is(err, tidegate.ErrStale) {
		t.Error("a second release", err)
	}
	stats := statsOf(t, gate)
	equal(t, stats.InFlight, 0, "in flight")
	equal(t, stats.Released[tidegate.Overload], 1, "overload")
	equal(t, stats.Released[tidegate.Success], 0, "success")
}

func TestDo(t *testing.T) {
	gate := made(t, 1)
	background := context.Background()
	canceled, cancel := context.WithCancel(background)
	cancel()
	never := func(context.Context) error { t.Error("it ran"); return nil }

	broken := errors.New("no such table")
	for _, each := range []struct {
		err     error
		outcome tidegate.Outcome
	}{
		{nil, tidegate.Success},
		{broken, tidegate.Success},
		{context.DeadlineExceeded, tidegate.Overload},
		{fmt.Errorf("reading: %w", os.ErrDeadlineExceeded), tidegate.Overload},
		{context.Canceled, tidegate.Ignore},
		{&tidegate.Shed{Reason: tidegate.ReasonLimit}, tidegate.Ignore},
	} {
		before := statsOf(t, gate).Released[each.outcome]
		err := gate.Do(background, tidegate.Default, func(context.Context) error {
			equal(t, gate.InFlight(), 1, "inside")
			if err := gate.Do(background, tidegate.CriticalPlus, never); !errors.Is(err, tidegate.ErrShed) {
				t.Error("another one was let in", err)
			}
			return each.err
		})
		equal(t, err, each.err, "what it returned")
		equal(t, statsOf(t, gate).Released[each.outcome], before+1, fmt.Sprint(each.outcome, " for ", each.err))
	}
	equal(t, gate.Do(canceled, tidegate.Default, never), context.Canceled, "a context that is over")
	equal(t, gate.InFlight(), 0, "at rest")
}

func TestDoUnwinds(t *testing.T) {
	gate := made(t, 1)
	func() {
		defer func() { equal(t, recover(), any("boom"), "the panic") }()
		_ = gate.Do(context.Background(), tidegate.Critical, func(context.Context) error { panic("boom") })
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = gate.Do(context.Background(), tidegate.Critical, func(context.Context) error {
			runtime.Goexit()
			return nil
		})
	}()
	<-ended
	stats := statsOf(t, gate)
	equal(t, stats.InFlight, 0, "in flight")
	equal(t, stats.Released[tidegate.Ignore], 2, "ignored")
}

func TestThePriorityOfAContext(t *testing.T) {
	gate := made(t, 10)
	work := func(context.Context) error { return nil }
	ctx := tidegate.WithPriority(context.Background(), tidegate.Sheddable)
	_ = gate.Do(ctx, tidegate.Default, work)
	_ = gate.Do(ctx, tidegate.CriticalPlus, work)
	_ = gate.Do(context.Background(), tidegate.Default, work)
	stats := statsOf(t, gate)
	equal(t, stats.Admitted[tidegate.Sheddable], 1, "of the context")
	equal(t, stats.Admitted[tidegate.CriticalPlus], 1, "said")
	equal(t, stats.Admitted[tidegate.Critical], 1, "the gate's")
	equal(t, stats.FallbackPriority, 1, "fallback")
}

func TestOutcomesOfOnesOwn(t *testing.T) {
	busy := errors.New("busy")
	gate := made(t, 1, tidegate.WithOutcomes(func(err error) tidegate.Outcome {
		switch err {
		case busy:
			return tidegate.Overload
		case nil:
			return tidegate.OutcomeOf(err)
		}
		return 99
	}))
	_ = gate.Do(context.Background(), tidegate.Default, func(context.Context) error { return busy })
	_ = gate.Do(context.Background(), tidegate.Default, func(context.Context) error { return errors.New("other") })
	stats := statsOf(t, gate)
	equal(t, stats.Released[tidegate.Overload], 1, "overload")
	equal(t, stats.Released[tidegate.Success], 1, "a number that is no outcome")
	equal(t, stats.InFlight, 0, "in flight")
}

func TestDrain(t *testing.T) {
	gate := made(t, 1)
	permit := admitted(t, gate, tidegate.Critical, 1)
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	equal(t, gate.Drain(canceled), context.Canceled, "with one inside")
	left := make(chan error)
	go func() { left <- gate.Drain(context.Background()) }()
	if err := permit.Release(); err != nil {
		t.Fatal(err)
	}
	equal(t, <-left, nil, "with none")
	equal(t, statsOf(t, gate).Closed, true, "closed")
}

func TestAFile(t *testing.T) {
	path := t.TempDir() + "/gates.toml"
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("[gates.db]\nlimit = 3\ndefault_priority = \"sheddable_plus\"\n[gates.mail]\nlimit = 1\nrate = \"1/h\"\n")
	gates, err := tidegate.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	db, err := gates.Gate("db")
	if err != nil {
		t.Fatal(err)
	}
	again, _ := gates.Gate("db")
	equal(t, again, db, "the same each time")
	permit := admitted(t, db, tidegate.Default, 1)
	equal(t, permit.Priority(), tidegate.SheddablePlus, "the default priority")

	mail, err := gates.Gate("mail")
	if err != nil {
		t.Fatal(err)
	}
	_ = admitted(t, mail, tidegate.Critical, 1).Release()
	_, err = mail.TryAdmit(tidegate.Critical, 1)
	if !errors.Is(err, tidegate.ReasonRate) || !strings.HasPrefix(err.Error(), "gate 'mail' over its rate of 1/h (burst 1): ") {
		t.Error(err)
	}

	write("[gates.db]\nlimit = 5\ndefault_priority = \"sheddable\"\n")
	changes, err := gates.Reload()
	if err != nil || len(changes) != 3 {
		t.Error(changes, err)
	}
	equal(t, db.Limit(), 5, "limit")
	_ = permit.Release()
	permit = admitted(t, db, tidegate.Default, 1)
	equal(t, permit.Priority(), tidegate.Sheddable, "the default priority, reloaded")
	if _, err = mail.TryAdmit(tidegate.Critical, 1); !errors.Is(err, tidegate.ReasonClosed) {
		t.Error("a gate that is gone from the file", err)
	}

	write("[gates.db]\nlimit = -5\n")
	if _, err := gates.Reload(); !errors.Is(err, tidegate.ErrConfig) || !strings.Contains(err.Error(), "-5") {
		t.Error(err)
	}
	equal(t, db.Limit(), 5, "limit, after a bad file")
	if _, err := tidegate.Open(path + ".none"); !errors.Is(err, tidegate.ErrConfig) {
		t.Error("a file that is not there", err)
	}
}

// The gates of a file go with the last reference to one of them or to a permit.
func TestAGateKeepsItsFile(t *testing.T) {
	gates, err := tidegate.OpenText("[gates.db]\nlimit = 2\n", "gates.toml")
	if err != nil {
		t.Fatal(err)
	}
	db, _ := gates.Gate("db")
	gates = nil // so that only db is left
	permits := []*tidegate.Permit{}
	for range 3 {
		runtime.GC()
		permit, err := db.TryAdmit(tidegate.Critical, 1)
		if err == nil {
			permits = append(permits, permit)
		}
	}
	db = nil
	runtime.GC()
	equal(t, len(permits), 2, "admitted")
	for _, permit := range permits {
		equal(t, permit.Release(), nil, "released")
		equal(t, permit.Gate().Name(), "db", "name")
	}
}

func TestExplainIsNeverCut(t *testing.T) {
	var file strings.Builder
	for at := range 700 {
		fmt.Fprintf(&file, "[gates.%s%d]\nlimit = %d\n", strings.Repeat("g", 200), at, at)
	}
	gates, err := tidegate.OpenText(file.String(), "many.toml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := gates.Explain()
	if err != nil || !strings.Contains(text, "ggg699") || len(text) < 1<<17 {
		t.Error(len(text), err)
	}
	equal(t, len(gates.All()), 700, "gates")
}

func TestStatsAsJSON(t *testing.T) {
	text, err := json.Marshal(statsOf(t, made(t, 8, tidegate.WithTiming())))
	if err != nil || !strings.Contains(string(text), `"thresholds":{"critical":8,"critical_plus":8,"sheddable":6,"sheddable_plus":8}`) {
		t.Error(string(text), err)
	}
}
