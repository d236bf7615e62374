//go:build tidegate_flags

package tidegate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"tidegate"
	"tidegate/internal/hooks"
)

func pressureOf(t testing.TB, gate *tidegate.Gate) tidegate.PressureReport {
	t.Helper()
	report, err := gate.Pressure()
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// waits is overloaded at once, and sheds at once.
var waits = tidegate.Watch(tidegate.SignalPushed).Name("waits").Enter(0.8).Leave(0.6).Full(0.9).
	EnterFor(0).LeaveFor(time.Second).Dwell(0).Ramp(0)

func TestWhatIsPushedSheds(t *testing.T) {
	hooks.SetClock(0)
	gate := made(t, 20, tidegate.WithSignals(waits), tidegate.WithSignals(tidegate.Watch(tidegate.SignalErrors)))
	before := pressureOf(t, gate)
	if before.Overloaded || before.Level != 0 || before.Transitions != 0 || len(before.Signals) != 2 {
		t.Errorf("%+v", before)
	}
	equal(t, before.Signals[0], tidegate.SignalReport{Name: "waits", Enter: 0.8, Leave: 0.6, Full: 0.9}, "before anything")
	equal(t, before.Signals[1], tidegate.SignalReport{
		Name: "errors", Enter: 0.1, Leave: 0.05, Full: 0.5, Reads: 1, Failures: 1,
	}, "the defaults of another kind")

	equal(t, gate.Signal("waits", 0.95, 5*time.Second), nil, "a push")
	if _, err := gate.TryAdmit(tidegate.Sheddable, 1); !errors.Is(err, tidegate.ReasonPressure) {
		t.Error(err)
	}
	goOn := 0
	for range 40 {
		if permit, err := gate.TryAdmit(tidegate.CriticalPlus, 1); err == nil {
			goOn++
			_ = permit.Release()
		}
	}
	equal(t, goOn, 1, "of the most important some go on")
	now := pressureOf(t, gate)
	for priority, share := range map[tidegate.Priority]float64{
		tidegate.CriticalPlus: 0.95, tidegate.Critical: 0.95, tidegate.SheddablePlus: 1, tidegate.Sheddable: 1,
	} {
		if math.Abs(now.Shares[priority]-share) > 1e-4 {
			t.Error(priority, now.Shares[priority])
		}
	}
	equal(t, fmt.Sprint(now.Overloaded, now.Level, now.Transitions), "true 1 1", "pressure")
	equal(t, now.Signals[0], tidegate.SignalReport{
		Name: "waits", Known: true, Value: 0.95, Overloaded: true, Level: 1, Enter: 0.8, Leave: 0.6, Full: 0.9, Reads: 1,
	}, "waits")

	equal(t, gate.Signal("waits", 0.81, 5*time.Second), nil, "a push")
	hooks.SetClock(1e9)
	level := pressureOf(t, gate).Level
	equal(t, fmt.Sprintf("%.2f", level), "0.70", "level")
	shares := pressureOf(t, gate).Shares
	equal(t, fmt.Sprintf("%.2f %.2f", shares[tidegate.CriticalPlus], shares[tidegate.Critical]), "0.00 0.76", "shares")

	hooks.SetClock(7e9) // it is unknown now, which is never overload
	equal(t, admitted(t, gate, tidegate.Sheddable, 1).Release(), nil, "admitted again")
	equal(t, fmt.Sprint(pressureOf(t, gate).Overloaded, pressureOf(t, gate).Signals[0].Known), "false false", "later")
	equal(t, statsOf(t, gate).Shed[tidegate.Sheddable][tidegate.ReasonPressure], 1, "shed")
}

func TestHowLongAPushIsGood(t *testing.T) {
	for _, each := range []struct {
		goodFor time.Duration
		knownAt uint64
		known   bool
	}{
		{time.Millisecond, 500_000, true},
		{1, 500_000, true}, // rounded up
		{time.Millisecond + 1, 1_500_000, true},
		{time.Millisecond + 1, 2_500_000, false},
		{0, 1, false},
		{math.MaxInt64, 1e18, true},
	} {
		hooks.SetClock(0)
		gate := made(t, 20, tidegate.WithSignals(waits))
		equal(t, gate.Signal("waits", 1, each.goodFor), nil, "a push")
		hooks.SetClock(each.knownAt)
		equal(t, pressureOf(t, gate).Signals[0].Known, each.known, fmt.Sprintf("%+v", each))
	}
}

func TestEachTimeOfASignalComesWhereItBelongs(t *testing.T) {
	// Whether it is overloaded at each second where 1 is pushed until a second, and 0 from then on; and the levels.
	seconds := func(signal tidegate.Signal, until int) (overloaded, levels string) {
		hooks.SetClock(0)
		gate := made(t, 20, tidegate.WithSignals(signal))
		for second := range 12 {
			hooks.SetClock(uint64(second) * 1e9)
			value := 0.0
			if second < until {
				value = 1
			}
			equal(t, gate.Signal("waits", value, time.Minute), nil, "a push")
			is := pressureOf(t, gate)
			overloaded += map[bool]string{false: "0", true: "1"}[is.Signals[0].Overloaded]
			equal(t, is.Signals[0].Known, true, "known")
			equal(t, is.Signals[0].Value, value, "value")
			levels += fmt.Sprintf(" %.1f", is.Level)
		}
		return overloaded, levels
	}
	quick := waits.LeaveFor(0)
	overloaded, _ := seconds(quick, 1)
	equal(t, overloaded, "110000000000", "without any: the look at which its level comes down is not yet the last")
	overloaded, _ = seconds(quick.EnterFor(2*time.Second), 12)
	equal(t, overloaded, "001111111111", "enter for")
	overloaded, _ = seconds(quick.LeaveFor(3*time.Second), 1)
	equal(t, overloaded, "111100000000", "leave for")
	overloaded, _ = seconds(quick.Dwell(6*time.Second), 1)
	equal(t, overloaded, "111111000000", "dwell")
	overloaded, levels := seconds(quick.Ramp(10*time.Second), 12)
	equal(t, overloaded, "111111111111", "before its level is up, too")
	equal(t, levels, " 0.0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1.0 1.0", "ramp")
}

func TestWhatAGateSeesOfItself(t *testing.T) {
	hooks.SetClock(0)
	gate := made(t, 20, tidegate.WithObjective(time.Second), tidegate.WithSignals(
		tidegate.Watch(tidegate.SignalErrors).EnterFor(0).Ramp(0), tidegate.Watch(tidegate.SignalLatency)))
	aSecond(t, gate, 0, 20, tidegate.Overload)
	hooks.SetClock(3e9)
	report := pressureOf(t, gate)
	equal(t, fmt.Sprint(report.Overloaded, report.Level), "true 1", "pressure")
	equal(t, fmt.Sprint(report.Signals[0].Name, report.Signals[0].Value, report.Signals[1].Name, report.Signals[1].Known),
		"errors1latencytrue", "signals")
}

// What signals and their numbers cannot be: nothing is made then, and nothing changed.
func TestWhatNoSignalCanBe(t *testing.T) {
	gate := made(t, 20, tidegate.WithSignals(waits, tidegate.Watch(tidegate.SignalErrors)))
	for _, value := range []float64{-0.1, 1.1, 70, math.NaN(), math.Inf(1), math.Inf(-1)} {
		refused(t, gate.Signal("waits", value, time.Second), value, "value")
	}
	for _, goodFor := range []time.Duration{-1, -time.Second, math.MinInt64} {
		refused(t, gate.Signal("waits", 1, goodFor), goodFor, "good for")
	}
	for _, name := range []string{"", "wait", "errors", "waits\x00", "\xff", strings.Repeat("n", 256)} {
		refused(t, gate.Signal(name, 1, time.Second), fmt.Sprintf("%q", name), "name")
	}
	equal(t, pressureOf(t, gate).Signals[0].Reads, 0, "reads")

	pushed := tidegate.Watch(tidegate.SignalPushed)
	wrong := func(kind error, text string, signals ...tidegate.Signal) {
		t.Helper()
		_, err := tidegate.New("db", 20, tidegate.WithSignals(signals...))
		if !errors.Is(err, kind) || !strings.Contains(fmt.Sprint(err), text) {
			t.Errorf("got %v, expected %s", err, text)
		}
	}
	for _, pressure := range []float64{-0.1, -1, 1.1, 70, math.NaN(), math.Inf(1), math.Inf(-1)} {
		rule := fmt.Sprintf(" of a signal must be a pressure from 0 to 1, got %v", pressure)
		wrong(tidegate.ErrArgument, "enter"+rule, pushed.Enter(pressure))
		wrong(tidegate.ErrArgument, "leave"+rule, pushed.Leave(pressure))
		wrong(tidegate.ErrArgument, "full"+rule, pushed.Full(pressure))
	}
	for _, length := range []time.Duration{-1, -time.Second, math.MinInt64} {
		rule := fmt.Sprintf(" of a signal must be 0 or more, got %s", length)
		wrong(tidegate.ErrArgument, "enter_for"+rule, pushed.EnterFor(length))
		wrong(tidegate.ErrArgument, "leave_for"+rule, pushed.LeaveFor(length))
		wrong(tidegate.ErrArgument, "dwell"+rule, pushed.Dwell(length))
		wrong(tidegate.ErrArgument, "ramp"+rule, pushed.Ramp(length))
	}
	for _, kind := range []tidegate.SignalKind{0, 9, -1, math.MaxInt32} {
		wrong(tidegate.ErrArgument, fmt.Sprintf("1 to 8, got %d", kind), tidegate.Watch(kind))
	}
	thresholds := "a signal's thresholds must be 0 <= leave < enter <= full <= 1"
	wrong(tidegate.ErrArgument, "signals[1]: "+thresholds, waits, pushed.Enter(0.7))
	wrong(tidegate.ErrArgument, thresholds, pushed.Enter(0))
	wrong(tidegate.ErrArgument, thresholds, pushed.Full(0.8))
	wrong(tidegate.ErrArgument, "a signal's name must not contain NUL", pushed.Name("a\x00b"))
	for _, name := range []string{"", "a\nb", "\xff", strings.Repeat("n", 256)} {
		wrong(tidegate.ErrArgument, "name must be 1 to 255 bytes", pushed.Name(name))
	}
	wrong(tidegate.ErrConfig, `"pushed" twice`, pushed, pushed)
	wrong(tidegate.ErrConfig, "objective", tidegate.Watch(tidegate.SignalLatency))
}

func TestSignalsHaveTheirNamesAndDefaults(t *testing.T) {
	var all []tidegate.Signal
	names := []string{}
	for kind := tidegate.SignalCPU; kind <= tidegate.SignalPushed; kind++ {
		all = append(all, tidegate.Watch(kind))
		names = append(names, kind.String())
	}
	gate := made(t, 20, tidegate.WithSignals(all...), tidegate.WithObjective(time.Second))
	for at, each := range pressureOf(t, gate).Signals {
		equal(t, each.Name, names[at], "name")
	}
	equal(t, strings.Join(names, " "), "cpu memory psi-cpu psi-memory psi-io latency errors pushed", "names")
	equal(t, fmt.Sprint(tidegate.SignalKind(0), tidegate.SignalKind(9)), "SignalKind(0) SignalKind(9)", "no names")
	none := pressureOf(t, made(t, 20))
	text, err := json.Marshal(none)
	equal(t, err, nil, "as JSON")
	equal(t, string(text), `{"level":0,"shares":{"critical":0,"critical_plus":0,"sheddable":0,"sheddable_plus":0},`+
		`"overloaded":false,"transitions":0,"signals":[]}`, "without signals")
	named := tidegate.Watch(tidegate.SignalPushed).Name("🌊 é")
	gate = made(t, 20, tidegate.WithSignals(named, named.Name(strings.Repeat("n", 255))))
	signals := pressureOf(t, gate).Signals
	equal(t, fmt.Sprint(signals[0].Name, len(signals[1].Name)), "🌊 é255", "a setter leaves what it is called on")
	equal(t, gate.Signal("🌊 é", 0, 0), nil, "a push")
	// What is 0 is 0, not the default.
	gate = made(t, 20, tidegate.WithSignals(tidegate.Watch(tidegate.SignalPushed).Leave(0)))
	equal(t, pressureOf(t, gate).Signals[0].Leave, 0, "leave")
}

// A file gives the same as options do, and a reload leaves what a controller has found.
func TestControllersAndSignalsOfAFile(t *testing.T) {
	hooks.SetClock(0)
	text := "[gates.db]\nlimit = 20\nobjective = '2s'\ncontroller = { kind = 'aimd', min = 4 }\n" +
		"signals = [{ kind = 'pushed', name = 'waits' }]\n"
	gates, err := tidegate.OpenText(text, "gates.toml")
	if err != nil {
		t.Fatal(err)
	}
	gate, _ := gates.Gate("db")
	equal(t, controllerOf(t, gate).Objective, 2*time.Second, "objective")
	for second := range uint64(4) {
		aSecond(t, gate, second, 20, tidegate.Success)
	}
	found := gate.Limit()
	equal(t, gate.Signal("waits", 0.5, time.Minute), nil, "a push")
	changes, err := gates.ReloadText(text)
	if err != nil || len(changes) != 0 || found <= 20 {
		t.Error(changes, err, found)
	}
	equal(t, gate.Limit(), found, "limit")
	equal(t, pressureOf(t, gate).Signals[0].Reads, 1, "reads")
	if _, err := gates.ReloadText("[gates.db]\nlimit = 20\n"); err != nil {
		t.Error(err)
	}
	equal(t, controllerOf(t, gate).Kind, tidegate.NoController, "after that")
	equal(t, len(pressureOf(t, gate).Signals), 0, "signals")
	refused(t, gate.Signal("waits", 0.5, time.Minute), `"waits"`, "a signal that is gone")
}
