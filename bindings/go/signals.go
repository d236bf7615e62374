package tidegate

// #include "native.h"
import "C"

import (
	"fmt"
	"runtime"
	"time"
)

// Signal is a signal that a gate watches, and what its readings mean: see docs/signals.md. Make it with [Watch]; what
// is not said has the kind's default.
type Signal struct {
	kind                            SignalKind
	name                            *string
	enter, leave, full              *float64
	enterFor, leaveFor, dwell, ramp *time.Duration
}

// Watch is a signal of a kind, with all its defaults:
//
//	tidegate.Watch(tidegate.SignalPushed).Name("waits").Enter(0.8).Leave(0.6).EnterFor(0)
func Watch(kind SignalKind) Signal { return Signal{kind: kind} }

// Name is a label of 1 to 255 bytes without control characters; each signal of a gate has one of its own. Unless it is
// said, the kind's name.
func (s Signal) Name(name string) Signal { s.name = &name; return s }

// Enter is the pressure, 0 to 1, at or above which it is overloaded.
func (s Signal) Enter(pressure float64) Signal { s.enter = &pressure; return s }

// Leave is the pressure at or below which it is not any more, 0 to 1 and below Enter.
func (s Signal) Leave(pressure float64) Signal { s.leave = &pressure; return s }

// Full is the pressure at which all is shed that can be, Enter to 1.
func (s Signal) Full(pressure float64) Signal { s.full = &pressure; return s }

// EnterFor is for how long it must stay at Enter or above.
func (s Signal) EnterFor(length time.Duration) Signal { s.enterFor = &length; return s }

// LeaveFor is for how long it must stay at Leave or below.
func (s Signal) LeaveFor(length time.Duration) Signal { s.leaveFor = &length; return s }

// Dwell is how long it rests after a change.
func (s Signal) Dwell(length time.Duration) Signal { s.dwell = &length; return s }

// Ramp is the time in which what it sheds may rise from nothing to all.
func (s Signal) Ramp(length time.Duration) Signal { s.ramp = &length; return s }

// WithSignals has the gate watch signals, those of several WithSignals together.
func WithSignals(signals ...Signal) Option {
	return func(p *plan) error {
		for _, signal := range signals {
			native, err := signal.native(&p.pinned)
			if err != nil {
				return err
			}
			p.signals = append(p.signals, native)
		}
		return nil
	}
}

// native is what the library takes, where a negative number is a default: so it is none that was said.
func (s Signal) native(pinned *runtime.Pinner) (C.tidegate_signal_config, error) {
	native := C.tidegate_go_signal_config()
	native.kind = C.int32_t(s.kind)
	if s.name != nil {
		name, err := terminated("a signal's name", *s.name)
		if err != nil {
			return native, err
		}
		pinned.Pin(&name[0])
		native.name = &name[0]
	}
	for _, each := range []struct {
		what string
		said *float64
		to   *C.double
	}{{"enter", s.enter, &native.enter}, {"leave", s.leave, &native.leave}, {"full", s.full, &native.full}} {
		if each.said == nil {
			continue
		}
		if !(*each.said >= 0 && *each.said <= 1) {
			return native, argument("%s of a signal must be a pressure from 0 to 1, got %v", each.what, *each.said)
		}
		*each.to = C.double(*each.said)
	}
	for _, each := range []struct {
		what string
		said *time.Duration
		to   *C.double
	}{
		{"enter_for", s.enterFor, &native.enter_for}, {"leave_for", s.leaveFor, &native.leave_for},
		{"dwell", s.dwell, &native.dwell}, {"ramp", s.ramp, &native.ramp},
	} {
		if each.said == nil {
			continue
		}
		if *each.said < 0 {
			return native, argument("%s of a signal must be 0 or more, got %s", each.what, *each.said)
		}
		*each.to = C.double(each.said.Seconds())
	}
	return native, nil
}

// watched gives the configuration its signals. They stay where they are until pinned is undone.
func (p *plan) watched() {
	if len(p.signals) > 0 {
		p.pinned.Pin(&p.signals[0])
		p.config.signals = &p.signals[0]
		p.config.signal_count = C.size_t(len(p.signals))
	}
}

// Signal pushes a value from 0 to 1 into a signal of kind [SignalPushed]; whoever asks for a permit next has it looked
// at. It is good for so long, in whole milliseconds, rounded up; after that the signal is unknown, which is never
// overload.
func (g *Gate) Signal(name string, value float64, goodFor time.Duration) error {
	milliseconds := goodFor / time.Millisecond
	switch rest := goodFor % time.Millisecond; {
	case rest > 0:
		milliseconds++
	case rest < 0:
		milliseconds-- // never 0, which is no negative time
	}
	text, length := pointerTo(name)
	status := C.tidegate_signal(g.native, text, length, C.double(value), C.int64_t(milliseconds))
	runtime.KeepAlive(name)
	runtime.KeepAlive(g)
	if status == C.TIDEGATE_ERR_ARGUMENT {
		return argument("a signal must be one of the gate's into which values are pushed, its value from 0 to 1 and good "+
			"for no negative time, got %q, %v and %v", name, value, goodFor)
	}
	return done(status)
}

// PressureReport is what a gate's signals come to.
type PressureReport struct {
	// Level is the pressure level, 0 to 1: that of the worst signal.
	Level float64 `json:"level"`
	// Shares is which share of each priority it sheds, 0 to 1.
	Shares map[Priority]float64 `json:"shares"`
	// Overloaded says whether any signal is.
	Overloaded bool `json:"overloaded"`
	// Transitions is how often one became overloaded, or no longer was.
	Transitions uint64 `json:"transitions"`
	// Signals are what they say, in the order in which they were given.
	Signals []SignalReport `json:"signals"`
}

// SignalReport is what one signal says.
type SignalReport struct {
	// Name is its name.
	Name string `json:"name"`
	// Known says whether it said anything when it was last looked at.
	Known bool `json:"known"`
	// Value is what it said, 0 to 1; 0 where it is not known.
	Value float64 `json:"value"`
	// Overloaded says whether it is.
	Overloaded bool `json:"overloaded"`
	// Level is its own pressure level, 0 to 1.
	Level float64 `json:"level"`
	// Enter: overloaded at this or above.
	Enter float64 `json:"enter"`
	// Leave: not overloaded any more at this or below.
	Leave float64 `json:"leave"`
	// Full: its level is 1 at this.
	Full float64 `json:"full"`
	// Reads is how often it was measured, or a value pushed.
	Reads uint64 `json:"reads"`
	// Failures is how often it did not know.
	Failures uint64 `json:"failures"`
	// Cost is what the last measurement took.
	Cost time.Duration `json:"cost"`
}

// Pressure is what the gate's signals come to; all zero without signals. Where it is time to look at them, this does.
func (g *Gate) Pressure() (PressureReport, error) {
	native := C.tidegate_go_pressure()
	status := C.tidegate_get_pressure(g.native, &native)
	runtime.KeepAlive(g)
	if err := done(status); err != nil {
		return PressureReport{}, err
	}
	report := PressureReport{
		Level:       float64(native.level),
		Shares:      map[Priority]float64{},
		Overloaded:  bool(native.overloaded),
		Transitions: uint64(native.transitions),
		Signals:     []SignalReport{},
	}
	for at, priority := range Priorities() {
		report.Shares[priority] = float64(native.shares[at])
	}
	for {
		said, status := g.signalAt(len(report.Signals))
		if status == C.TIDEGATE_ERR_ARGUMENT { // behind the last
			return report, nil
		}
		if err := done(status); err != nil {
			return PressureReport{}, err
		}
		report.Signals = append(report.Signals, said)
	}
}

func (g *Gate) signalAt(position int) (SignalReport, C.tidegate_status) {
	native := C.tidegate_go_signal_report()
	status := C.tidegate_get_signal(g.native, C.size_t(position), &native)
	runtime.KeepAlive(g)
	return SignalReport{
		Name:       C.GoString(&native.name[0]),
		Known:      native.value >= 0,
		Value:      max(float64(native.value), 0),
		Overloaded: bool(native.overloaded),
		Level:      float64(native.level),
		Enter:      float64(native.enter),
		Leave:      float64(native.leave),
		Full:       float64(native.full),
		Reads:      uint64(native.reads),
		Failures:   uint64(native.failures),
		Cost:       wait(float64(native.cost)),
	}, status
}

// SignalKind is what a signal measures.
type SignalKind int32

// The signals.
const (
	// SignalCPU: CPU time used of what the process may use.
	SignalCPU SignalKind = C.TIDEGATE_SIGNAL_CPU
	// SignalMemory: memory in use of what the process may use.
	SignalMemory SignalKind = C.TIDEGATE_SIGNAL_MEMORY
	// SignalPSICPU: the share of time in which something waited for a CPU.
	SignalPSICPU SignalKind = C.TIDEGATE_SIGNAL_PSI_CPU
	// SignalPSIMemory: the share of time in which something waited for memory.
	SignalPSIMemory SignalKind = C.TIDEGATE_SIGNAL_PSI_MEMORY
	// SignalPSIIO: the share of time in which something waited for a disk.
	SignalPSIIO SignalKind = C.TIDEGATE_SIGNAL_PSI_IO
	// SignalLatency: how long the gate's own permits are held, as a share of its objective.
	SignalLatency SignalKind = C.TIDEGATE_SIGNAL_LATENCY
	// SignalErrors: the share of the gate's own answers that were Overload.
	SignalErrors SignalKind = C.TIDEGATE_SIGNAL_ERRORS
	// SignalPushed: what [Gate.Signal] pushes.
	SignalPushed SignalKind = C.TIDEGATE_SIGNAL_PUSHED
)

var signalNames = [...]string{"cpu", "memory", "psi-cpu", "psi-memory", "psi-io", "latency", "errors", "pushed"}

// String is the name, as every language has it.
func (k SignalKind) String() string {
	if k < SignalCPU || int(k) > len(signalNames) {
		return fmt.Sprintf("SignalKind(%d)", int32(k))
	}
	return signalNames[k-SignalCPU]
}

// MarshalText writes the name.
func (k SignalKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }
