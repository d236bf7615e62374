package tidegate

// #cgo noescape tidegate_go_try_admit
// #cgo nocallback tidegate_go_try_admit
// #cgo noescape tidegate_release
// #cgo nocallback tidegate_release
// #cgo nocallback tidegate_release_collected
// #cgo noescape tidegate_retry_after
// #cgo nocallback tidegate_retry_after
// #include "native.h"
import "C"

import (
	"math"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

// What [Gate.RetryAfter] says beside a time.
const (
	// Unknown: nothing is known yet.
	Unknown time.Duration = -1
	// Never: no retry can succeed: the gate is closed, or the weight exceeds the priority's threshold.
	Never time.Duration = math.MaxInt64
)

// Gate is the admission controller of one protected resource. Make it with [New], or take it out of a file's
// [Gates]. There is nothing to free: the library's part goes with the last reference to the gate and its permits.
type Gate struct {
	native    *C.tidegate_gate
	owner     *Gates // of a gate of a file; keeps it
	name      string
	outcomeOf func(error) Outcome
	fallback  atomic.Int32 // the default priority
}

const reasonSize = 1 << 10

var nothing byte

// New makes a gate. The name is a label for people, 1 to 255 bytes of UTF-8 without control characters; two gates may
// have the same. The limit, 0 to 2^31 - 1, is the most weight that may be in flight; with a controller it may be [Auto].
func New(name string, limit int, options ...Option) (*Gate, error) {
	if err := library(); err != nil {
		return nil, err
	}
	made := plan{config: C.tidegate_go_config(), outcomeOf: OutcomeOf}
	defer made.pinned.Unpin()
	for _, option := range options {
		if err := option(&made); err != nil {
			return nil, err
		}
	}
	if err := made.startAt(limit); err != nil {
		return nil, err
	}
	made.watched()
	gate := &Gate{name: name, outcomeOf: made.outcomeOf}
	var why [reasonSize]C.char
	text, size := pointerTo(name)
	status := C.tidegate_gate_new(&made.config, text, size, &gate.native, &why[0], reasonSize)
	runtime.KeepAlive(name)
	if status != C.TIDEGATE_ADMITTED {
		return nil, failed(status, C.GoString(&why[0]))
	}
	gate.fallback.Store(int32(priorityOf(made.config.default_priority)))
	runtime.AddCleanup(gate, func(native *C.tidegate_gate) { C.tidegate_gate_free(native) }, gate.native)
	return gate, nil
}

// pointerTo is a string as the library takes it: with its length, so that no byte in it ends it.
func pointerTo(text string) (*C.char, C.size_t) {
	if text == "" { // whose pointer may be nil, which the library takes for a mistake
		return (*C.char)(unsafe.Pointer(&nothing)), 0
	}
	return (*C.char)(unsafe.Pointer(unsafe.StringData(text))), C.size_t(len(text))
}

// Name is the label it was made with.
func (g *Gate) Name() string { return g.name }

// TryAdmit asks for a permit of a weight, 1 to 2^31 - 1. It never waits: the error is a [Shed] where the request is
// turned away, and an [Error] where the call itself is wrong.
func (g *Gate) TryAdmit(priority Priority, weight int) (*Permit, error) {
	token, err := g.admit(priority, weight)
	if err != nil {
		return nil, err
	}
	return g.hold(token, g.resolved(priority), weight), nil
}

func (g *Gate) admit(priority Priority, weight int) (C.uint64_t, error) {
	var answer C.tidegate_go_answer
	C.tidegate_go_try_admit(g.native, priority.native(), C.int64_t(weight), &answer)
	runtime.KeepAlive(g)
	if answer.status == C.TIDEGATE_ADMITTED {
		return answer.permit, nil
	}
	return 0, g.refused(priority, weight, &answer)
}

func (g *Gate) refused(priority Priority, weight int, answer *C.tidegate_go_answer) error {
	if answer.status > 0 {
		return &Shed{
			Reason:   Reason(answer.status),
			Priority: g.resolved(priority),
			Weight:   weight,
			InFlight: int(answer.in_flight),
			Limit:    int(answer.limit),
			gate:     g,
		}
	}
	if answer.status == C.TIDEGATE_ERR_ARGUMENT {
		return wrongRequest(priority, weight)
	}
	return failed(answer.status, "")
}

func wrongRequest(priority Priority, weight int) error {
	if weight < 1 || weight > largest {
		return outside("weight", 1, weight)
	}
	return argument("no priority has the number %d", int32(priority))
}

// resolved is what the gate makes of a priority.
func (g *Gate) resolved(priority Priority) Priority {
	if priority == Default {
		return Priority(g.fallback.Load())
	}
	return priority
}

// SetLimit sets the most weight that may be in flight, 0 to 2^31 - 1. Once it has returned, nothing is admitted above
// it. Permits that are out stay valid. A controller starts anew from it, and takes none outside its bounds.
func (g *Gate) SetLimit(limit int) error { return g.SetLimitCause(limit, "") }

// SetLimitCause is SetLimit with the cause, for the gate's history; empty is none.
func (g *Gate) SetLimitCause(limit int, cause string) error {
	text, err := terminated("a cause", cause)
	if err != nil {
		return err
	}
	var given *C.char
	if cause != "" {
		given = &text[0]
	}
	status := C.tidegate_set_limit_cause(g.native, C.int64_t(limit), given)
	runtime.KeepAlive(g)
	if status == C.TIDEGATE_ERR_ARGUMENT {
		return g.wrongLimit(limit)
	}
	return done(status)
}

// wrongLimit names the rule: with a controller its bounds.
func (g *Gate) wrongLimit(limit int) error {
	if controller, err := g.Controller(); err == nil && controller.Kind != NoController {
		return argument("limit must be a whole number from %d to %d, got %d", controller.Min, controller.Max, limit)
	}
	return outside("limit", 0, limit)
}

// SetThresholds sets all thresholds; what is not named is the gate's default again.
func (g *Gate) SetThresholds(thresholds Thresholds) error {
	all, err := thresholds.native()
	if err != nil {
		return err
	}
	status := C.tidegate_set_threshold_kinds(g.native, &all[0])
	runtime.KeepAlive(g)
	return done(status)
}

// SetRate sets the rate, or takes it away by the zero value. Once it has returned, nothing is admitted by the old one.
func (g *Gate) SetRate(rate Rate) error {
	native := rate.native()
	status := C.tidegate_set_rate(g.native, &native)
	runtime.KeepAlive(g)
	if status == C.TIDEGATE_ERR_ARGUMENT {
		return argument("a rate must have a count from 0 to 10000000000, a burst from 0 to %d and a second, a minute "+
			"or an hour, got %s", largest, rate)
	}
	return done(status)
}

// Rate is the rate, with its burst; the zero value where there is none.
func (g *Gate) Rate() (Rate, error) {
	var native C.tidegate_rate
	status := C.tidegate_get_rate(g.native, &native)
	runtime.KeepAlive(g)
	return Rate{int(native.count), time.Duration(native.per) * time.Second, int(native.burst)}, done(status)
}

// SetEnforce switches dry run off (true) or on (false).
func (g *Gate) SetEnforce(enforce bool) error {
	status := C.tidegate_set_enforce(g.native, C.bool(enforce))
	runtime.KeepAlive(g)
	return done(status)
}

// Close closes the gate for good: nothing is admitted any more. What is inside may leave in its own time. Closing it
// again changes nothing.
func (g *Gate) Close() error {
	status := C.tidegate_close(g.native)
	runtime.KeepAlive(g)
	return done(status)
}

// RetryAfter is how long a request should stay away: a lower bound, from how quickly the gate drains for its
// priority. 0 when it would be admitted now, [Unknown], or [Never].
func (g *Gate) RetryAfter(priority Priority, weight int) (time.Duration, error) {
	var seconds C.double
	status := C.tidegate_retry_after(g.native, priority.native(), C.int64_t(weight), &seconds)
	runtime.KeepAlive(g)
	if status == C.TIDEGATE_ERR_ARGUMENT {
		return Unknown, wrongRequest(priority, weight)
	}
	if status != C.TIDEGATE_ADMITTED {
		return Unknown, done(status)
	}
	return wait(float64(seconds)), nil
}

// wait rounds to whole nanoseconds: what the library says is a whole number of them, written as seconds.
func wait(seconds float64) time.Duration {
	switch {
	case seconds < 0:
		return Unknown
	case math.IsInf(seconds, 1):
		return Never
	case seconds*1e9 >= math.MaxInt64: // centuries; not never
		return Never - 1
	default:
		return time.Duration(math.Round(seconds * 1e9))
	}
}

// InFlight is the weight in flight, without what dry run let in beyond the limit.
func (g *Gate) InFlight() int {
	weight := C.tidegate_in_flight(g.native)
	runtime.KeepAlive(g)
	return int(max(weight, 0))
}

// Limit is the most weight that may be in flight.
func (g *Gate) Limit() int {
	weight := C.tidegate_limit(g.native)
	runtime.KeepAlive(g)
	return int(max(weight, 0))
}

// Latency is how long permits of a priority were held: what a share, 0 to 1, of them did not exceed, within 1.6 %.
// Unknown without [WithTiming], or where nothing was measured yet.
func (g *Gate) Latency(priority Priority, share float64) (time.Duration, error) {
	var seconds C.double
	status := C.tidegate_latency(g.native, priority.native(), C.double(share), &seconds)
	runtime.KeepAlive(g)
	if status == C.TIDEGATE_ERR_ARGUMENT {
		return Unknown, argument("latency is of one of the four priorities and a share from 0 to 1, got %s and %v",
			priority, share)
	}
	if status != C.TIDEGATE_ADMITTED {
		return Unknown, done(status)
	}
	return wait(float64(seconds)), nil
}
