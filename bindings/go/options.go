package tidegate

// #include "native.h"
import "C"

import (
	"fmt"
	"math"
	"runtime"
	"time"
)

// Option is something about a gate that is not as by default. See [New].
type Option func(*plan) error

// plan is what a gate is made from.
type plan struct {
	config    C.tidegate_config
	signals   []C.tidegate_signal_config
	pinned    runtime.Pinner // what config points at
	outcomeOf func(error) Outcome
}

// WithThresholds says how full the gate may be for each priority: see [Thresholds].
func WithThresholds(thresholds Thresholds) Option {
	return func(p *plan) (err error) {
		p.config.thresholds, err = thresholds.native()
		return err
	}
}

// WithDefaultPriority is the priority of requests that name none; Critical unless set.
func WithDefaultPriority(priority Priority) Option {
	return func(p *plan) error {
		if !priority.named() {
			return argument("the default priority must be one of the four, got %s", priority)
		}
		p.config.default_priority = priority.native()
		return nil
	}
}

// WithEnforce false is dry run: everything is let in, and what would have been shed is counted.
func WithEnforce(enforce bool) Option {
	return func(p *plan) error {
		p.config.enforce = C.bool(enforce)
		return nil
	}
}

// WithTiming measures how long permits are held: two clock readings each, and 32 KiB.
func WithTiming() Option {
	return func(p *plan) error {
		p.config.timing = true
		return nil
	}
}

// WithRate says how much may be admitted a time, whatever is inside.
func WithRate(rate Rate) Option {
	return func(p *plan) error {
		p.config.rate = rate.native()
		return nil
	}
}

// WithOutcomes replaces [OutcomeOf] where errors tell the outcome: in [Gate.Do], and in sqlgate.
func WithOutcomes(of func(error) Outcome) Option {
	return func(p *plan) error {
		if of == nil {
			return argument("WithOutcomes needs a function, got nil")
		}
		p.outcomeOf = of
		return nil
	}
}

// Threshold is how full a gate may be for one priority still to enter. The zero value is the gate's default.
type Threshold struct {
	kind  C.int32_t
	value int64
	wrong error
}

// Thresholds by priority: what is not named is the gate's default: 1.0, 1.0, 0.9 and 0.75 of the limit. They must
// not rise as importance falls, and the first is the limit itself.
type Thresholds map[Priority]Threshold

// Share is a share of the limit from 0 to 1, rounded up to whole weight.
func Share(fraction float64) Threshold {
	if !(fraction >= 0 && fraction <= 1) {
		return Threshold{wrong: argument("a threshold must be a fraction of the limit from 0 to 1, got %v", fraction)}
	}
	return Threshold{kind: C.TIDEGATE_THRESHOLD_PPM, value: int64(math.Round(fraction * 1e6))}
}

// Reserve is a weight that stays free for more important priorities.
func Reserve(weight int) Threshold {
	if weight < 0 || weight > largest {
		return Threshold{wrong: outside("a reserve", 0, weight)}
	}
	return Threshold{kind: C.TIDEGATE_THRESHOLD_RESERVE, value: int64(weight)}
}

func (t Thresholds) native() (all [4]C.tidegate_threshold, err error) {
	for priority, threshold := range t {
		if threshold.wrong != nil {
			return all, threshold.wrong
		}
		if !priority.named() {
			return all, argument("a threshold belongs to one of the four priorities, got %s", priority)
		}
		all[priority-CriticalPlus] = C.tidegate_threshold{kind: threshold.kind, value: C.int64_t(threshold.value)}
	}
	return all, nil
}

// Rate is how much may be admitted a time, by weight: in any stretch of time T no more than Burst + T x Count / Per.
// The zero value is no rate: any.
type Rate struct {
	// Count is 0 to 10^10. Of 0 the burst is admitted once, and then nothing.
	Count int
	// Per is time.Second, time.Minute or time.Hour.
	Per time.Duration
	// Burst is the most weight that may enter at once; 0 is the default: what one second brings, rounded up.
	Burst int
}

// String is for people: "150/min (burst 10)".
func (r Rate) String() string {
	unit := r.Per.String()
	switch r.Per {
	case time.Second:
		unit = "s"
	case time.Minute:
		unit = "min"
	case time.Hour:
		unit = "h"
	}
	return fmt.Sprintf("%d/%s (burst %d)", r.Count, unit, r.Burst)
}

func (r Rate) native() C.tidegate_rate {
	per := C.int32_t(-1) // refused
	switch r.Per {
	case 0:
		per = 0
	case time.Second, time.Minute, time.Hour:
		per = C.int32_t(r.Per / time.Second)
	}
	return C.tidegate_rate{count: C.int64_t(r.Count), burst: C.int64_t(r.Burst), per: per}
}
