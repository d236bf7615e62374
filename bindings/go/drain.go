package tidegate

// #include "native.h"
import "C"

import (
	"context"
	"runtime"
	"time"
)

const longestStep = 50 * time.Millisecond

// Drain closes the gate and waits until everything inside has left. The error is the context's where it ends before.
//
// A call of the library that waits keeps a thread of the operating system, so it waits here, in steps that grow.
func (g *Gate) Drain(ctx context.Context) error {
	step := time.Millisecond
	for {
		status := C.tidegate_drain(g.native, 0)
		runtime.KeepAlive(g)
		if status != C.TIDEGATE_SHED_TIMEOUT {
			return done(status)
		}
		timer := time.NewTimer(step)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		step = min(2*step, longestStep)
	}
}
