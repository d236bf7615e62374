package tidegate

// #include "native.h"
import "C"

import "fmt"

// Priority is how important a request is. The zero value is the gate's default.
type Priority int32

// The priorities, most important first.
const (
	// Default is the gate's default priority, or that of the context where there is one: see [WithPriority].
	Default Priority = iota
	// CriticalPlus is shed last: serious harm to users when it fails.
	CriticalPlus
	// Critical does harm to users when it fails. Also called essential.
	Critical
	// SheddablePlus is batch work, retries made later.
	SheddablePlus
	// Sheddable is shed first. Also called non-essential.
	Sheddable

	Essential    = Critical
	NonEssential = Sheddable
)

var priorityNames = [...]string{"default", "critical_plus", "critical", "sheddable_plus", "sheddable"}

// Priorities returns the four priorities, most important first.
func Priorities() []Priority { return []Priority{CriticalPlus, Critical, SheddablePlus, Sheddable} }

// ParsePriority returns the priority of a name, as every language has it.
func ParsePriority(name string) (Priority, error) {
	switch name {
	case "essential":
		return Essential, nil
	case "non-essential":
		return NonEssential, nil
	}
	for _, priority := range Priorities() {
		if priority.String() == name {
			return priority, nil
		}
	}
	return Default, argument("no priority has the name %q", name)
}

// String is the name, as every language has it.
func (p Priority) String() string {
	if p < 0 || int(p) >= len(priorityNames) {
		return fmt.Sprintf("Priority(%d)", int32(p))
	}
	return priorityNames[p]
}

// MarshalText writes the name.
func (p Priority) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a name, as [ParsePriority] does.
func (p *Priority) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePriority(string(text))
	return err
}

// named says whether it is one of the four.
func (p Priority) named() bool { return p >= CriticalPlus && p <= Sheddable }

// native is the number in the C ABI. What is no priority here is none there.
func (p Priority) native() C.int32_t {
	switch {
	case p == Default:
		return C.TIDEGATE_PRIORITY_DEFAULT
	case p.named():
		return C.int32_t(p - CriticalPlus)
	default:
		return -1
	}
}

func priorityOf(native C.int32_t) Priority {
	if native == C.TIDEGATE_PRIORITY_DEFAULT {
		return Default
	}
	return Priority(native) + CriticalPlus
}

// Reason is why a request was shed. As an error it is what [errors.Is] finds in a [Shed]:
//
//	errors.Is(err, tidegate.ReasonRate)
type Reason int32

// The reasons.
const (
	// ReasonLimit: the weight does not fit under the limit.
	ReasonLimit Reason = C.TIDEGATE_SHED_LIMIT
	// ReasonPriority: it would fit, but the rest is kept for more important priorities.
	ReasonPriority Reason = C.TIDEGATE_SHED_PRIORITY
	// ReasonRate: the rate limit is used up.
	ReasonRate Reason = C.TIDEGATE_SHED_RATE
	// ReasonPressure: a signal says that the resource is overloaded.
	ReasonPressure Reason = C.TIDEGATE_SHED_PRESSURE
	// ReasonClosed: the gate is closed.
	ReasonClosed Reason = C.TIDEGATE_SHED_CLOSED
	// ReasonTimeout: the wait was longer than allowed.
	ReasonTimeout Reason = C.TIDEGATE_SHED_TIMEOUT
	// ReasonShare: this host's share of the fleet's limit is used up.
	ReasonShare Reason = C.TIDEGATE_SHED_SHARE
)

var reasonNames = [...]string{"limit", "priority", "rate", "pressure", "closed", "timeout", "share"}

// String is the name, as every language has it.
func (r Reason) String() string {
	if r < ReasonLimit || int(r) > len(reasonNames) {
		return fmt.Sprintf("Reason(%d)", int32(r))
	}
	return reasonNames[r-ReasonLimit]
}

// Error is what the library says of it.
func (r Reason) Error() string { return "tidegate: " + statusText(C.tidegate_status(r)) }

// MarshalText writes the name.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Outcome is what a permit's work came to.
type Outcome int32

// The outcomes.
const (
	// Success: the resource answered, even with an error of its own.
	Success Outcome = C.TIDEGATE_OUTCOME_SUCCESS
	// Overload: the resource was too busy: timed out, pool exhausted.
	Overload Outcome = C.TIDEGATE_OUTCOME_OVERLOAD
	// Ignore: it says nothing about the resource: cancelled, interrupted, never begun.
	Ignore Outcome = C.TIDEGATE_OUTCOME_IGNORE
)

var outcomeNames = [...]string{"success", "overload", "ignore"}

// String is the name, as every language has it.
func (o Outcome) String() string {
	if o < 0 || int(o) >= len(outcomeNames) {
		return fmt.Sprintf("Outcome(%d)", int32(o))
	}
	return outcomeNames[o]
}

// MarshalText writes the name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }
