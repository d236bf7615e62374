package tidegate

// #include "native.h"
import "C"

import (
	"runtime"
	"sync/atomic"
)

// Permit is the right to use the resource once. It is released exactly once, by any goroutine. One that is forgotten
// is found by the garbage collector, released then with outcome Ignore, and counted as collected: its weight was out
// of use until that moment, so do not rely on it.
type Permit struct {
	gate     *Gate
	token    atomic.Uint64 // 0 once it is released
	weight   int
	priority Priority
}

// hold makes a permit of an admission. A finalizer, not a cleanup: it was measured to make admit and release cheaper by
// a fifth, and a permit is no part of any cycle.
func (g *Gate) hold(token C.uint64_t, priority Priority, weight int) *Permit {
	permit := &Permit{gate: g, weight: weight, priority: priority}
	permit.token.Store(uint64(token))
	runtime.SetFinalizer(permit, (*Permit).collect)
	return permit
}

// collect is what the garbage collector does with a forgotten permit: the gate is still there, since the permit is.
func (p *Permit) collect() {
	if token := p.token.Swap(0); token != 0 {
		C.tidegate_release_collected(p.gate.native, C.uint64_t(token))
		runtime.KeepAlive(p)
	}
}

// Release gives the permit back with outcome Success. Of several calls the first does; the others return ErrStale,
// which a deferred call may ignore.
func (p *Permit) Release() error { return p.ReleaseAs(Success) }

// ReleaseAs gives the permit back and says what its work came to. A number that is no outcome is ErrArgument, and
// leaves the permit held.
func (p *Permit) ReleaseAs(outcome Outcome) error {
	if outcome < Success || outcome > Ignore {
		return argument("no outcome has the number %d", int32(outcome))
	}
	token := p.token.Swap(0)
	if token == 0 {
		return ErrStale
	}
	runtime.SetFinalizer(p, nil)
	status := C.tidegate_release(p.gate.native, C.uint64_t(token), C.int32_t(outcome))
	runtime.KeepAlive(p) // and its gate, which must not be freed while the library is at work on it
	return done(status)
}

// Released says whether it was released.
func (p *Permit) Released() bool { return p.token.Load() == 0 }

// Gate is the gate that gave it.
func (p *Permit) Gate() *Gate { return p.gate }

// Priority is what it was admitted with.
func (p *Permit) Priority() Priority { return p.priority }

// Weight is how much of the limit it takes.
func (p *Permit) Weight() int { return p.weight }

// Over says whether dry run let it in although enforcement would have shed it; false once it is released.
func (p *Permit) Over() bool {
	read := C.tidegate_go_permit()
	status := C.tidegate_get_permit(p.gate.native, C.uint64_t(p.token.Load()), &read)
	runtime.KeepAlive(p)
	return status == C.TIDEGATE_ADMITTED && bool(read.over)
}
