package tidegate_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tidegate"
)

// percent makes the storms shorter, or longer.
func percent(n int) int {
	if of, err := strconv.Atoi(os.Getenv("TIDEGATE_TEST_PERCENT")); err == nil {
		return max(1, n*of/100)
	}
	return n
}

// collected waits until the garbage collector has found so many.
func collected(t *testing.T, gate *tidegate.Gate, wanted uint64) {
	t.Helper()
	for range 1000 {
		if statsOf(t, gate).Collected >= wanted {
			return
		}
		runtime.GC()
		runtime.Gosched()
	}
	t.Errorf("%d collected, expected %d", statsOf(t, gate).Collected, wanted)
}

func TestAForgottenPermitIsCollectedOnce(t *testing.T) {
	gate := made(t, 100)
	func() {
		for range 75 {
			admitted(t, gate, tidegate.Sheddable, 1).Weight()
		}
	}()
	collected(t, gate, 75)
	runtime.GC()
	stats := statsOf(t, gate)
	equal(t, stats.InFlight, 0, "in flight")
	equal(t, stats.Collected, stats.Admitted[tidegate.Sheddable], "collected")
	equal(t, stats.Released[tidegate.Ignore], stats.Collected, "ignored")
}

// D36: permits that are released, released twice at once, or forgotten, while the collector is at work. Each leaves
// once, and at rest nothing is inside.
func TestStorm(t *testing.T) {
	const limit = 64
	seed := uint64(36)
	gate := made(t, limit)
	rounds := percent(100_000) / 8
	stop := make(chan struct{})
	var collecting, working sync.WaitGroup
	collecting.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	var lock sync.Mutex
	var released, forgotten, twice uint64
	for worker := range uint64(8) {
		working.Go(func() {
			chance := rand.New(rand.NewPCG(seed, worker))
			var gone, left, stale uint64
			for range rounds {
				permit, err := gate.TryAdmit(tidegate.Critical, 1+chance.IntN(3))
				if err != nil {
					continue
				}
				switch chance.IntN(8) {
				case 0:
					left++
				case 1:
					other := make(chan error)
					go func() { other <- permit.Release() }()
					first, second := permit.ReleaseAs(tidegate.Overload), <-other
					if (first == nil) == (second == nil) {
						t.Errorf("two releases at once: %v, %v (seed %d)", first, second, seed)
					}
					if errors.Is(first, tidegate.ErrStale) || errors.Is(second, tidegate.ErrStale) {
						stale++
					}
					gone++
				default:
					if err := permit.Release(); err != nil {
						t.Errorf("%v (seed %d)", err, seed)
					}
					gone++
				}
			}
			lock.Lock()
			defer lock.Unlock()
			released, forgotten, twice = released+gone, forgotten+left, twice+stale
		})
	}
	working.Wait()
	close(stop)
	collecting.Wait()
	collected(t, gate, forgotten)
	runtime.GC()
	stats := statsOf(t, gate)
	equal(t, stats.InFlight, 0, "in flight")
	equal(t, stats.Collected, forgotten, "collected")
	equal(t, stats.Admitted[tidegate.Critical], released+forgotten, "admitted")
	equal(t, stats.Released[tidegate.Success]+stats.Released[tidegate.Overload], released, "released")
	if stats.HighWater > limit || forgotten == 0 || twice == 0 {
		t.Errorf("high water %d, %d forgotten, %d released twice (seed %d)", stats.HighWater, forgotten, twice, seed)
	}
}

// A gate and its permits that are forgotten together: the gate outlives the permits' release, and leaves no memory behind.
func TestForgottenGates(t *testing.T) {
	rounds := func(count int) {
		for range count {
			for range 100 {
				gate := made(t, 4, tidegate.WithTiming()) // 32 KiB and more
				for range rand.IntN(4) {
					admitted(t, gate, tidegate.Critical, 1).Weight()
				}
			}
			runtime.GC()
			runtime.Gosched()
		}
	}
	rounds(5)
	before := resident(t)
	rounds(25)
	if grown := resident(t) - before; grown > 40<<20 {
		t.Errorf("2500 gates left %d bytes", grown)
	}
}

// resident is the memory of the process; 0 where the system does not say it.
func resident(t *testing.T) int {
	said, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Log("without a look at the memory:", err)
		return 0
	}
	pages, err := strconv.Atoi(strings.Fields(string(said))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// Limits that move while others enter: never more inside than the largest of them.
func TestLimitsThatMove(t *testing.T) {
	gate := made(t, 8)
	var working sync.WaitGroup
	for range 4 {
		working.Go(func() {
			for range percent(20_000) {
				if permit, err := gate.TryAdmit(tidegate.CriticalPlus, 1); err == nil {
					_ = permit.Release()
				}
			}
		})
	}
	for at := range percent(2_000) {
		equal(t, gate.SetLimit(at%9), nil, "limit")
	}
	working.Wait()
	stats := statsOf(t, gate)
	equal(t, stats.InFlight, 0, "in flight")
	if stats.HighWater > 8 {
		t.Error("high water", stats.HighWater)
	}
}
