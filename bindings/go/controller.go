package tidegate

// #include "native.h"
import "C"

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"
)

// Auto is, as the limit of [New], wherever the controller starts by itself. A number that no sum ends in by mistake.
const Auto int = math.MinInt

// Controller is what moves a gate's limit, and within which bounds: see docs/choosing.md. Of the numbers 0 is the
// default. The zero value is nothing.
type Controller struct {
	Kind ControllerKind
	// Min is the smallest limit, 1 to Max; 1 unless set.
	Min int
	// Max is the largest, 1 to 2^31 - 1; 1000 unless set, or Min if that is more.
	Max int
	// Ceiling is a limit that a capacity test has shown to hold, at least Min: nothing goes above it.
	Ceiling int
	// Prior is the limit to start from, Min to Max; unless set the gate's own, and of [Auto] the geometric mean of Min
	// and Max.
	Prior int
}

// WithController has the limit moved. Then that of [New] is where it starts, and may be [Auto].
func WithController(controller Controller) Option {
	return func(p *plan) error {
		p.config.controller = C.tidegate_controller{
			kind:    C.int32_t(controller.Kind),
			min:     C.int64_t(controller.Min),
			max:     C.int64_t(controller.Max),
			ceiling: C.int64_t(controller.Ceiling),
			prior:   C.int64_t(controller.Prior),
		}
		return nil
	}
}

// WithObjective is the time within which an answer is good, for the controller and for [SignalLatency]. Without one
// every success is.
func WithObjective(objective time.Duration) Option {
	return func(p *plan) error {
		if objective <= 0 {
			return argument("objective must be longer than zero, got %s", objective)
		}
		p.config.objective = C.double(objective.Seconds())
		return nil
	}
}

// startAt is the gate's limit.
func (p *plan) startAt(limit int) error {
	controlled := p.config.controller.kind != C.TIDEGATE_CONTROLLER_NONE
	switch {
	case limit == Auto && controlled:
		p.config.limit = -1
	case limit == Auto:
		return argument("limit must be a whole number from 0 to %d, or Auto with a controller, got %d", largest, limit)
	case limit < 0: // of which -1 would be Auto to the library
		return outside("limit", 0, limit)
	default:
		p.config.limit = C.int64_t(limit)
	}
	return nil
}

// ControllerReport is what a gate's controller is at.
type ControllerReport struct {
	// Kind is NoController where there is none, and then all else is zero.
	Kind ControllerKind `json:"kind"`
	// Min is the smallest limit.
	Min int `json:"min"`
	// Max is the largest, the ceiling included.
	Max int `json:"max"`
	// Prior is where it started.
	Prior int `json:"prior"`
	// Cause is why the limit is what it is.
	Cause Cause `json:"cause"`
	// Objective is the time within which an answer is good; 0: every success is.
	Objective time.Duration `json:"objective"`
	// Looks is how often it looked.
	Looks uint64 `json:"looks"`
	// Moves is how often it moved the limit on evidence.
	Moves uint64 `json:"moves"`
	// Probes is how often it moved the limit for an experiment, there and back.
	Probes uint64 `json:"probes"`
	// Window is what it looked at last.
	Window Window `json:"window"`
}

// Window is what a controller looks at.
type Window struct {
	// Elapsed is how long it was.
	Elapsed time.Duration `json:"elapsed"`
	// Completions are the permits that came back with Success or Overload.
	Completions uint64 `json:"completions"`
	// Good are those that were good.
	Good uint64 `json:"good"`
	// Overload are those with Overload.
	Overload uint64 `json:"overload"`
	// Admissions are requests that were admitted.
	Admissions uint64 `json:"admissions"`
	// Refusals are requests that met a full gate.
	Refusals uint64 `json:"refusals"`
}

// Controller is what the gate's controller is at; the zero value where there is none.
func (g *Gate) Controller() (ControllerReport, error) {
	native := C.tidegate_go_controller_report()
	status := C.tidegate_get_controller(g.native, &native)
	runtime.KeepAlive(g)
	if err := done(status); err != nil {
		return ControllerReport{}, err
	}
	return ControllerReport{
		Kind:      ControllerKind(native.kind),
		Min:       int(native.min),
		Max:       int(native.max),
		Prior:     int(native.prior),
		Cause:     Cause(native.cause),
		Objective: wait(float64(native.objective)),
		Looks:     uint64(native.looks),
		Moves:     uint64(native.moves),
		Probes:    uint64(native.probes),
		Window: Window{
			Elapsed:     wait(float64(native.window)),
			Completions: uint64(native.completions),
			Good:        uint64(native.good),
			Overload:    uint64(native.overload),
			Admissions:  uint64(native.admissions),
			Refusals:    uint64(native.refusals),
		},
	}, nil
}

// LimitChange is one change of a gate's limit.
type LimitChange struct {
	// From is the limit before.
	From int `json:"from"`
	// To is the limit from then on.
	To int `json:"to"`
	// Age is how long ago it was.
	Age time.Duration `json:"age"`
	// Cause is why, as whoever changed it said, up to 63 bytes of it; of a controller the name of a [Cause]. Empty is
	// nothing.
	Cause string `json:"cause"`
}

// LimitHistory are the last 64 changes of the limit, the latest last. A controller's experiments are not among them.
// They are read one by one: what is changed meanwhile may show twice.
func (g *Gate) LimitHistory() ([]LimitChange, error) {
	latestFirst := []LimitChange{}
	for {
		native := C.tidegate_go_limit_change()
		status := C.tidegate_get_limit_change(g.native, C.size_t(len(latestFirst)), &native)
		runtime.KeepAlive(g)
		if status == C.TIDEGATE_ERR_ARGUMENT { // behind the last
			slices.Reverse(latestFirst)
			return latestFirst, nil
		}
		if err := done(status); err != nil {
			return nil, err
		}
		latestFirst = append(latestFirst, LimitChange{
			From:  int(native.from),
			To:    int(native.to),
			Age:   wait(float64(native.age)),
			Cause: C.GoString(&native.cause[0]),
		})
	}
}

// ControllerKind is which controller moves a limit.
type ControllerKind int32

// The controllers.
const (
	// NoController: nothing moves the limit.
	NoController ControllerKind = C.TIDEGATE_CONTROLLER_NONE
	// ControllerFixed holds the limit. Everything else that a controller shows is there.
	ControllerFixed ControllerKind = C.TIDEGATE_CONTROLLER_FIXED
	// ControllerAIMD: one more while nothing is overload, a tenth less when something is.
	ControllerAIMD ControllerKind = C.TIDEGATE_CONTROLLER_AIMD
	// ControllerGradient2 goes by latency against its long average.
	ControllerGradient2 ControllerKind = C.TIDEGATE_CONTROLLER_GRADIENT2
	// ControllerVegas goes by latency against the shortest seen.
	ControllerVegas ControllerKind = C.TIDEGATE_CONTROLLER_VEGAS
	// ControllerGoodput climbs to where most good answers come out.
	ControllerGoodput ControllerKind = C.TIDEGATE_CONTROLLER_GOODPUT
)

var controllerNames = [...]string{"none", "fixed", "aimd", "gradient2", "vegas", "goodput"}

// String is the name, as every language has it.
func (k ControllerKind) String() string {
	if k < 0 || int(k) >= len(controllerNames) {
		return fmt.Sprintf("ControllerKind(%d)", int32(k))
	}
	return controllerNames[k]
}

// MarshalText writes the name.
func (k ControllerKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Cause is why a controller has the limit at what it is.
type Cause int32

// The causes.
const (
	// CauseHold: nothing spoke for a move.
	CauseHold Cause = C.TIDEGATE_CAUSE_HOLD
	// CauseProbe: one arm of an experiment: a little above or below, and back soon.
	CauseProbe Cause = C.TIDEGATE_CAUSE_PROBE
	// CauseRaise: the evidence was for more.
	CauseRaise Cause = C.TIDEGATE_CAUSE_RAISE
	// CauseLower: the evidence was for less.
	CauseLower Cause = C.TIDEGATE_CAUSE_LOWER
	// CauseLost: most answers were late or failed: down at once.
	CauseLost Cause = C.TIDEGATE_CAUSE_LOST
)

var causeNames = [...]string{"hold", "probe", "raise", "lower", "lost"}

// String is the name, as every language has it.
func (c Cause) String() string {
	if c < 0 || int(c) >= len(causeNames) {
		return fmt.Sprintf("Cause(%d)", int32(c))
	}
	return causeNames[c]
}

// MarshalText writes the name.
func (c Cause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }
