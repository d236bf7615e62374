//go:build tidegate_flags

// Ratios times the wrapper against its peers, in turn in one run, by Go's own harness, and writes the figures as
// target/bench.json has them: `ratios OUT.json`.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/failsafe-go/failsafe-go/bulkhead"
	"golang.org/x/sync/semaphore"

	"tidegate"
)

// #cgo noescape nothing
// #cgo nocallback nothing
// static void nothing(void *at) { (void)at; }
import "C"

const (
	limit  = 20
	rounds = 15
)

type side func(b *testing.B)

type figure struct {
	Name   string   `json:"name"`
	OursNs float64  `json:"ours_ns"`
	PeerNs float64  `json:"peer_ns"`
	Ratio  float64  `json:"ratio"`
	Bar    *float64 `json:"bar"`
	Ok     bool     `json:"ok"`
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func nanoseconds(of side) float64 {
	result := testing.Benchmark(of)
	return float64(result.T.Nanoseconds()) / float64(result.N)
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

func compare(name string, ours, peer side) figure {
	var all, others, ratios []float64
	for range rounds {
		a, b := nanoseconds(ours), nanoseconds(peer)
		all, others, ratios = append(all, a), append(others, b), append(ratios, a/b)
	}
	return figure{name, median(all), median(others), median(ratios), nil, true}
}

// parallel has all processors at it.
func parallel(work func()) side {
	return func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				work()
			}
		})
	}
}

func loop(work func()) side {
	return func(b *testing.B) {
		for b.Loop() {
			work()
		}
	}
}

func main() {
	testing.Init()
	flag.Parse()
	must(0, flag.Set("test.benchtime", "20ms"))

	gate := must(tidegate.New("bench", limit))
	full := must(tidegate.New("full", 0))
	weighted := semaphore.NewWeighted(limit)
	bulk := bulkhead.New[any](limit)
	ctx := context.Background()
	work := func(context.Context) error { return nil }

	pair := func() {
		if permit, err := gate.TryAdmit(tidegate.Critical, 1); err == nil {
			_ = permit.Release()
		}
	}
	do := func() { _ = gate.Do(ctx, tidegate.Critical, work) }
	reject := func() { _, _ = full.TryAdmit(tidegate.Critical, 1) }
	semaphorePair := func() {
		if weighted.TryAcquire(1) {
			weighted.Release(1)
		}
	}
	bulkheadPair := func() {
		if bulk.TryAcquirePermit() {
			bulk.ReleasePermit()
		}
	}
	crossings := func() {
		C.nothing(nil)
		C.nothing(nil)
	}

	figures := []figure{
		compare("go.pair_vs_xsync_semaphore", loop(pair), loop(semaphorePair)),
		compare("go.do_vs_xsync_semaphore", loop(do), loop(semaphorePair)),
		compare("go.pair_vs_xsync_semaphore_parallel", parallel(pair), parallel(semaphorePair)),
		compare("go.pair_vs_failsafe_bulkhead", loop(pair), loop(bulkheadPair)),
		compare("go.pair_vs_two_cgo_calls", loop(pair), loop(crossings)),
		compare("go.reject_vs_pair", loop(reject), loop(pair)),
	}
	for _, each := range figures {
		fmt.Printf("%-46s %9.1f %9.1f %8.3f\n", each.Name, each.OursNs, each.PeerNs, each.Ratio)
	}
	if flag.NArg() > 0 {
		text := must(json.MarshalIndent(map[string]any{"figures": figures}, "", " "))
		must(0, os.WriteFile(flag.Arg(0), text, 0o600))
	}
}
