package tidegate_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"tidegate"
)

// D16: a number is never cut to size on its way to the library, and one outside its rule changes nothing.
var outside = []int{-1, math.MinInt, -1 << 31, 1 << 31, 1 << 32, 1<<32 + 5, 1<<53 + 1, math.MaxInt}

const largest = 1<<31 - 1

func refused(t *testing.T, err error, number any, what string) {
	t.Helper()
	if !errors.Is(err, tidegate.ErrArgument) || !strings.Contains(err.Error(), fmt.Sprint(number)) {
		t.Errorf("%s %v: %v", what, number, err)
	}
}

func TestNumbersOutsideTheirRule(t *testing.T) {
	gate := made(t, 5, tidegate.WithRate(tidegate.Rate{Count: 1000, Per: time.Second, Burst: 7}))
	before := statsOf(t, gate)
	for _, number := range outside {
		_, err := tidegate.New("db", number)
		refused(t, err, number, "a new gate's limit")
		refused(t, gate.SetLimit(number), number, "limit")
		refused(t, gate.SetLimitCause(number, "deploy"), number, "limit")
		_, err = gate.TryAdmit(tidegate.Critical, number)
		refused(t, err, number, "weight")
		_, err = gate.RetryAfter(tidegate.Critical, number)
		refused(t, err, number, "weight")
		refused(t, gate.SetThresholds(tidegate.Thresholds{tidegate.Sheddable: tidegate.Reserve(number)}), number, "reserve")
		refused(t, gate.SetRate(tidegate.Rate{Count: 1, Per: time.Second, Burst: number}), number, "burst")
	}
	for _, number := range []int{-1, math.MinInt, 10_000_000_001, 1<<53 + 1, math.MaxInt} {
		refused(t, gate.SetRate(tidegate.Rate{Count: number, Per: time.Minute}), number, "count")
	}
	for _, per := range []time.Duration{1, -time.Second, time.Millisecond, 2 * time.Second, 24 * time.Hour, math.MaxInt64} {
		refused(t, gate.SetRate(tidegate.Rate{Count: 1, Per: per}), per, "per")
	}
	_, err := gate.TryAdmit(tidegate.Critical, 0)
	refused(t, err, 0, "weight")
	for _, priority := range []tidegate.Priority{-1, 5, 1000, math.MaxInt32, math.MinInt32} {
		_, err := gate.TryAdmit(priority, 1)
		refused(t, err, int32(priority), "priority")
		_, err = gate.RetryAfter(priority, 1)
		refused(t, err, int32(priority), "priority")
		_, err = gate.Latency(priority, 0.5)
		refused(t, err, int32(priority), "priority")
		_, err = tidegate.New("db", 1, tidegate.WithDefaultPriority(priority))
		refused(t, err, int32(priority), "default priority")
		err = gate.SetThresholds(tidegate.Thresholds{priority: tidegate.Share(1)})
		refused(t, err, int32(priority), "a threshold's priority")
	}
	for _, share := range []float64{-0.01, 1.01, math.NaN(), math.Inf(1), math.Inf(-1), 1e300} {
		refused(t, gate.SetThresholds(tidegate.Thresholds{tidegate.Sheddable: tidegate.Share(share)}), share, "share")
		_, err := gate.Latency(tidegate.Critical, share)
		refused(t, err, share, "share")
	}
	_, err = tidegate.New("db", 1, tidegate.WithDefaultPriority(tidegate.Default))
	refused(t, err, "default", "default priority")
	_, err = tidegate.New("db", 1, tidegate.WithOutcomes(nil))
	refused(t, err, "nil", "outcomes")

	after, rate := statsOf(t, gate), tidegate.Rate{}
	rate, _ = gate.Rate()
	equal(t, fmt.Sprint(after), fmt.Sprint(before), "nothing has changed")
	equal(t, rate, tidegate.Rate{Count: 1000, Per: time.Second, Burst: 7}, "rate")
}

func TestNumbersAtTheEndOfTheirRule(t *testing.T) {
	gate := made(t, largest)
	permit := admitted(t, gate, tidegate.Critical, largest)
	equal(t, gate.InFlight(), largest, "in flight")
	equal(t, permit.Weight(), largest, "weight")
	equal(t, permit.Release(), nil, "release")
	equal(t, gate.SetLimit(0), nil, "limit 0")
	equal(t, gate.Limit(), 0, "limit")
	equal(t, gate.SetLimit(largest), nil, "limit")
	equal(t, gate.SetRate(tidegate.Rate{Count: 10_000_000_000, Per: time.Hour, Burst: largest}), nil, "rate")
	equal(t, gate.SetRate(tidegate.Rate{}), nil, "no rate")
	equal(t, gate.SetThresholds(tidegate.Thresholds{tidegate.Sheddable: tidegate.Reserve(largest)}), nil, "reserve")
	equal(t, gate.SetThresholds(nil), nil, "default thresholds")
	rising := tidegate.Thresholds{tidegate.SheddablePlus: tidegate.Share(0.2), tidegate.Sheddable: tidegate.Share(0.5)}
	if err := gate.SetThresholds(rising); !errors.Is(err, tidegate.ErrConfig) {
		t.Error(err)
	}
}

// D35: what a name may be is the same as in every language; none is cut at a NUL.
func TestNames(t *testing.T) {
	for _, name := range []string{"db", "é", "e\u0301", "🌊", "/", "..", `a"b\c`, "a b", strings.Repeat("n", 255)} {
		gate, err := tidegate.New(name, 1)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		equal(t, gate.Name(), name, "name")
	}
	for _, name := range []string{"", "a\x00b", "a\nb", "\x7f", "\xff", "\xed\xa0\x80", strings.Repeat("n", 256), strings.Repeat("é", 128)} {
		if _, err := tidegate.New(name, 1); !errors.Is(err, tidegate.ErrArgument) {
			t.Errorf("%q: %v", name, err)
		}
	}
	gate := made(t, 1)
	if err := gate.SetLimitCause(2, "a\x00b"); !errors.Is(err, tidegate.ErrArgument) || gate.Limit() != 1 {
		t.Error("a cause with NUL", err)
	}
	equal(t, gate.SetLimitCause(2, "déploiement 🌊\nb"), nil, "a cause")
	if _, err := tidegate.Open("a\x00b"); !errors.Is(err, tidegate.ErrArgument) {
		t.Error("a path with NUL", err)
	}
	if _, err := tidegate.OpenText("", "a\x00b"); !errors.Is(err, tidegate.ErrArgument) {
		t.Error("a file's name with NUL", err)
	}
	rules := "[gates.a]\nlimit = 1\n[classifier]\n[[classifier.rules]]\nmatch = { path = \"/a\" }\npriority = \"sheddable\"\n"
	gates, err := tidegate.OpenText(rules, "names.toml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "b", "a\x00b", "a ", "A", "\xff"} {
		if _, err := gates.Gate(name); !errors.Is(err, tidegate.ErrArgument) {
			t.Errorf("the file has no %q: %v", name, err)
		}
	}
	for value, wanted := range map[string]tidegate.Priority{
		"/a": tidegate.Sheddable, "/a\x00": tidegate.Default, "/a\xff": tidegate.Default, "": tidegate.Default,
	} {
		priority, err := gates.Classify(tidegate.Attribute{Name: "path", Value: value})
		equal(t, err, nil, value)
		equal(t, priority, wanted, fmt.Sprintf("path %q", value))
	}
	if _, err := gates.Classify(tidegate.Attribute{Name: "path\x00", Value: "/a"}); !errors.Is(err, tidegate.ErrArgument) {
		t.Error("an attribute's name with NUL", err)
	}
	many := make([]tidegate.Attribute, 4097)
	for at := range many {
		many[at] = tidegate.Attribute{Name: fmt.Sprint("header.x-", at), Value: "v"}
	}
	many[4095] = tidegate.Attribute{Name: "path", Value: "/a"}
	priority, err := gates.Classify(many[:4096]...)
	equal(t, priority, tidegate.Sheddable, "4096 attributes")
	equal(t, err, nil, "4096 attributes")
	if _, err := gates.Classify(many...); !errors.Is(err, tidegate.ErrArgument) {
		t.Error("4097 attributes", err)
	}
	priority, err = gates.Classify()
	equal(t, priority, tidegate.Default, "no attributes")
	equal(t, err, nil, "no attributes")
}

func TestPriorities(t *testing.T) {
	for _, priority := range tidegate.Priorities() {
		parsed, err := tidegate.ParsePriority(priority.String())
		equal(t, parsed, priority, "parsed")
		equal(t, err, nil, "parsed")
	}
	for _, name := range []string{"", "default", "CRITICAL", "critical ", "Priority(7)"} {
		_, err := tidegate.ParsePriority(name)
		refused(t, err, name, "priority")
	}
}
