package tidegate

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// Shed says that a request was turned away: try again later. Take it out of an error with [errors.As], or ask
// [errors.Is] for [ErrShed] or a [Reason]. Nothing is formatted or computed until it is asked for.
type Shed struct {
	// Reason is why.
	Reason Reason
	// Priority is what was asked for, or what the gate made of Default.
	Priority Priority
	// Weight is what was asked for.
	Weight int
	// InFlight is the weight that was in flight, next to the decision.
	InFlight int
	// Limit is the gate's limit, next to the decision.
	Limit int

	gate *Gate
}

// Is makes [errors.Is] find ErrShed.
func (s *Shed) Is(target error) bool { return target == ErrShed }

// Unwrap is the reason.
func (s *Shed) Unwrap() error { return s.Reason }

// Gate is the gate that turned the request away.
func (s *Shed) Gate() *Gate { return s.gate }

// RetryAfter is how long a request like this should stay away, by what the gate knows now: see [Gate.RetryAfter].
func (s *Shed) RetryAfter() time.Duration {
	if s.gate == nil {
		return Unknown
	}
	wait, err := s.gate.RetryAfter(s.Priority, s.Weight)
	if err != nil {
		return Unknown
	}
	return wait
}

// RetryAfterHeader is the value of an HTTP Retry-After header: whole seconds, at least 1, with a jitter upwards that
// keeps those who were shed together from coming back together.
func (s *Shed) RetryAfterHeader() string {
	wait := Unknown // after closing, the successor of this process may admit at once
	if s.Reason != ReasonClosed {
		wait = s.RetryAfter()
	}
	seconds := int64(1)
	switch {
	case wait == Never: // here; after a change of the limit it may fit
		seconds = 60
	case wait > 24*time.Hour:
		seconds = 86_400
	case wait > 0:
		seconds = int64((wait + time.Second - 1) / time.Second)
	}
	return strconv.FormatInt(seconds+rand.Int64N(max(1, seconds/2)+1), 10)
}

// Error is for people: "gate 'db' full: 20 of 20 in flight (priority sheddable); retry in about 0.4 s".
func (s *Shed) Error() string {
	name, rate := "", Rate{}
	if s.gate != nil {
		name = s.gate.name
	}
	if s.Reason == ReasonClosed {
		return fmt.Sprintf("gate '%s' is closed", name)
	}
	why := "shed by " + s.Reason.String()
	switch s.Reason {
	case ReasonLimit:
		why = "full"
	case ReasonRate:
		why = "over its rate"
		if s.gate != nil {
			rate, _ = s.gate.Rate()
		}
		if rate.Per != 0 {
			why += " of " + rate.String()
		}
	}
	hint := ""
	switch wait := s.RetryAfter(); wait {
	case Unknown:
	case Never:
		hint = "; no retry can succeed"
	default:
		hint = fmt.Sprintf("; retry in about %.2g s", wait.Seconds())
	}
	return fmt.Sprintf("gate '%s' %s: %d of %d in flight (priority %s)%s", name, why, s.InFlight, s.Limit, s.Priority, hint)
}
