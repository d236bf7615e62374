// Package held marks a context with the permits that its request holds, so that what the request does inside takes no
// second place of the same gate.
package held

import (
	"context"
	"sync/atomic"
)

// Mark is one permit that a request holds, and the context that has it.
type Mark struct {
	context.Context
	gate any
	used atomic.Bool
}

type key struct{}

// Value finds the mark itself under the package's key.
func (m *Mark) Value(of any) any {
	if of == (key{}) {
		return m
	}
	return m.Context.Value(of)
}

// With marks the context.
func With(ctx context.Context, gate any) context.Context {
	return &Mark{Context: ctx, gate: gate}
}

// Use takes the place of a permit of this gate that the request holds and nobody inside uses: one permit is one
// place. Nil where there is none.
func Use(ctx context.Context, gate any) *Mark {
	mark, _ := ctx.Value(key{}).(*Mark)
	for mark != nil {
		if mark.gate == gate && mark.used.CompareAndSwap(false, true) {
			return mark
		}
		mark, _ = mark.Context.Value(key{}).(*Mark)
	}
	return nil
}

// GiveBack gives the place back.
func (m *Mark) GiveBack() { m.used.Store(false) }
