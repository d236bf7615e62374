package tidegate

// #include "native.h"
import "C"

import (
	"runtime"
	"time"
)

// Stats is a reading of a gate's counters. Each only grows, and in every reading no more was released than admitted;
// at rest all of it is exact. Every attempt is counted once, in Admitted, Shed or WouldShed.
type Stats struct {
	// Limit is the most weight that may be in flight.
	Limit int `json:"limit"`
	// InFlight is the weight in flight, without what dry run let in beyond the limit.
	InFlight int `json:"in_flight"`
	// HighWater is the most weight that was ever in flight.
	HighWater int `json:"high_water"`
	// Thresholds are how full the gate may be for each priority still to enter, in weight.
	Thresholds map[Priority]int `json:"thresholds"`
	// DefaultPriority is the priority of requests that name none.
	DefaultPriority Priority `json:"default_priority"`
	// Enforce is false in dry run.
	Enforce bool `json:"enforce"`
	// Closed says whether the gate was closed.
	Closed bool `json:"closed"`
	// Timing says whether it measures how long permits are held.
	Timing bool `json:"timing"`
	// Admitted are admissions by priority.
	Admitted map[Priority]uint64 `json:"admitted"`
	// Shed are requests turned away, by priority and reason.
	Shed map[Priority]map[Reason]uint64 `json:"shed"`
	// WouldShed is what dry run let in although enforcement would have shed it.
	WouldShed map[Priority]uint64 `json:"would_shed"`
	// Released are admissions that were released, by outcome.
	Released map[Outcome]uint64 `json:"released"`
	// UnmatchedExits are exits without an entry, of other languages: Go has permits only.
	UnmatchedExits uint64 `json:"unmatched_exits"`
	// Collected are permits that were forgotten, and found by the garbage collector.
	Collected uint64 `json:"collected"`
	// FallbackPriority are admissions that asked for Default.
	FallbackPriority uint64 `json:"fallback_priority"`
	// OverInFlight is what dry run let in beyond the limit and is still inside, in permits.
	OverInFlight uint64 `json:"over_in_flight"`
	// Occupancy is, with timing, the time integral of the weight in flight, modulo 2^63 microseconds.
	Occupancy time.Duration `json:"occupancy"`
	// Generation is how often the configuration changed, modulo 2^29.
	Generation uint32 `json:"generation"`
}

// Stats reads all counters.
func (g *Gate) Stats() (Stats, error) {
	native := C.tidegate_go_stats()
	status := C.tidegate_get_stats(g.native, &native)
	runtime.KeepAlive(g)
	if err := done(status); err != nil {
		return Stats{}, err
	}
	stats := Stats{
		Limit:            int(native.limit),
		InFlight:         int(native.in_flight),
		HighWater:        int(native.high_water),
		Thresholds:       map[Priority]int{},
		DefaultPriority:  priorityOf(native.default_priority),
		Enforce:          bool(native.enforce),
		Closed:           bool(native.closed),
		Timing:           bool(native.timing),
		Admitted:         map[Priority]uint64{},
		Shed:             map[Priority]map[Reason]uint64{},
		WouldShed:        map[Priority]uint64{},
		Released:         map[Outcome]uint64{},
		UnmatchedExits:   uint64(native.unmatched_exits),
		Collected:        uint64(native.collected),
		FallbackPriority: uint64(native.fallback_priority),
		OverInFlight:     uint64(native.over_in_flight),
		Occupancy:        time.Duration(native.occupancy_us) * time.Microsecond,
		Generation:       uint32(native.generation),
	}
	for at, priority := range Priorities() {
		stats.Thresholds[priority] = int(native.thresholds[at])
		stats.Admitted[priority] = uint64(native.admitted[at])
		stats.WouldShed[priority] = uint64(native.would_shed[at])
		stats.Shed[priority] = map[Reason]uint64{}
		for reason := ReasonLimit; reason <= ReasonShare; reason++ {
			stats.Shed[priority][reason] = uint64(native.shed[at][reason-ReasonLimit])
		}
	}
	for outcome := Success; outcome <= Ignore; outcome++ {
		stats.Released[outcome] = uint64(native.released[outcome])
	}
	return stats, nil
}
