package tidegate

// #include "native.h"
import "C"

import (
	"context"
	"runtime"

	"tidegate/internal/held"
)

type priorityKey struct{}

// WithPriority gives a context a priority: of everything in it that asks with Default.
func WithPriority(ctx context.Context, priority Priority) context.Context {
	return context.WithValue(ctx, priorityKey{}, priority)
}

// PriorityFrom is the context's priority, or Default.
func PriorityFrom(ctx context.Context) Priority {
	priority, _ := ctx.Value(priorityKey{}).(Priority)
	return priority
}

// Do runs a function inside the gate, with weight 1. Where it is shed, the function does not run and the error is a
// [Shed]; otherwise it is what the function returned, and [OutcomeOf] says what it tells about the resource. A
// context that is over admits nothing. A panic leaves the gate with outcome Ignore and goes on.
//
// Default is the context's priority, and the gate's where it has none.
func (g *Gate) Do(ctx context.Context, priority Priority, work func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if priority == Default {
		priority = PriorityFrom(ctx)
	}
	token, err := g.admit(priority, 1)
	if err != nil {
		return err
	}
	outcome := Ignore // unless the function returns: it may also panic, or end its goroutine
	defer func() {
		C.tidegate_release(g.native, token, C.int32_t(outcome))
		runtime.KeepAlive(g)
	}()
	err = work(held.With(ctx, g))
	outcome = g.OutcomeOf(err)
	return err
}

// OutcomeOf is what an error tells about this gate's resource: as [OutcomeOf], or as [WithOutcomes] has it.
func (g *Gate) OutcomeOf(err error) Outcome {
	outcome := g.outcomeOf(err)
	if outcome < Success || outcome > Ignore {
		return Success
	}
	return outcome
}
