//go:build tidegate_flags

package tidegate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidegate"
	"tidegate/internal/hooks"
)

type object = map[string]any

// vector is a case of tests/vectors: see its README.
type vector struct {
	Name       string   `json:"name"`
	Gate       object   `json:"gate"`
	Steps      []object `json:"steps"`
	Classifier object   `json:"classifier"`
	Cases      []object `json:"cases"`
	Expect     object   `json:"expect"`
	Toml       []string `json:"toml"`
	Problems   []object `json:"problems"`
}

// errSkipped is a step that Go's types cannot express, as a number that is no whole one.
var errSkipped = errors.New("inexpressible")

func TestVectors(t *testing.T) {
	files, err := filepath.Glob("../../tests/vectors/*.json")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	cases, skipped, bare := 0, 0, 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var vectors []vector
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber()
		if err := decoder.Decode(&vectors); err != nil {
			t.Fatal(file, err)
		}
		for _, each := range vectors {
			if isBare(each) {
				bare++
				continue
			}
			cases++
			t.Run(each.Name, func(t *testing.T) {
				running := runner{T: t, permits: map[string]*tidegate.Permit{}, seen: map[string]*tidegate.Gate{}}
				running.run(each)
				skipped += running.skipped
			})
		}
	}
	t.Logf("%d cases; left out: %d with bare entries, which Go has none of, and %d steps that its types cannot express",
		cases, bare, skipped)
	if cases < 140 || skipped > 30 || bare > 20 {
		t.Fatal("too much is left out")
	}
}

func isBare(each vector) bool {
	for _, step := range each.Steps {
		if step["op"] == "enter" || step["op"] == "exit" {
			return true
		}
	}
	return false
}

type runner struct {
	*testing.T
	gate    *tidegate.Gate
	gates   *tidegate.Gates
	permits map[string]*tidegate.Permit
	seen    map[string]*tidegate.Gate
	skipped int
}

func (r *runner) run(each vector) {
	hooks.SetClock(0)
	switch {
	case each.Classifier != nil:
		r.classifier(each)
		return
	case each.Toml != nil:
		r.open(each)
	default:
		made, err := makeGate(each.Gate)
		expect, _ := each.Gate["expect"].(object)
		if !r.left(err, expect) {
			r.answered(err, expect, each.Gate)
		}
		r.gate = made
	}
	for _, step := range each.Steps {
		if at, ok := step["at_ns"]; ok {
			ns, err := strconv.ParseUint(string(at.(json.Number)), 10, 64)
			if err != nil {
				r.Fatal(err)
			}
			hooks.SetClock(ns)
		}
		if name, ok := step["gate"].(string); ok {
			r.gate = r.seen[name]
		}
		r.step(step)
	}
	for _, permit := range r.permits {
		_ = permit.Release()
	}
}

// left counts a step that cannot be expressed; only what is expected to be refused may be one.
func (r *runner) left(err error, expect object) bool {
	if !errors.Is(err, errSkipped) {
		return false
	}
	if expect["error"] != "argument" {
		r.Errorf("left out, but expected %v", expect)
	}
	r.skipped++
	return true
}

var kinds = map[string]error{
	"argument": tidegate.ErrArgument, "stale": tidegate.ErrStale, "config": tidegate.ErrConfig, "null": tidegate.ErrNil,
}

func (r *runner) answered(err error, expect, step object) {
	r.Helper()
	kind, wanted := expect["error"].(string)
	if wanted && !errors.Is(err, kinds[kind]) || !wanted && err != nil {
		r.Errorf("got %v for %v", err, step)
	}
}

func (r *runner) step(step object) {
	expect := step["expect"].(object)
	var err error
	switch step["op"] {
	case "try_admit":
		r.tryAdmit(step, expect)
		return
	case "release":
		err = r.release(step)
	case "set_limit":
		var limit int
		if limit, err = whole(step, "limit", 0); err == nil {
			err = r.gate.SetLimit(limit)
		}
	case "set_thresholds":
		var thresholds tidegate.Thresholds
		if thresholds, err = thresholdsOf(step); err == nil {
			err = r.gate.SetThresholds(thresholds)
		}
	case "set_rate":
		var rate tidegate.Rate
		if rate, err = rateOf(step); err == nil {
			err = r.gate.SetRate(rate)
		}
	case "set_enforce":
		err = r.gate.SetEnforce(step["enforce"].(bool))
	case "signal":
		value, _ := step["value"].(json.Number).Float64()
		goodFor, _ := step["good_for_ms"].(json.Number).Int64()
		err = r.gate.Signal(step["name"].(string), value, time.Duration(goodFor)*time.Millisecond)
	case "close":
		err = r.gate.Close()
	case "retry_after":
		r.retryAfter(step, expect)
		return
	case "stats":
		r.compare(r.stats(), expect, step)
		return
	default:
		r.stepOfFile(step, expect)
		return
	}
	if !r.left(err, expect) {
		r.answered(err, expect, step)
	}
}

func (r *runner) tryAdmit(step, expect object) {
	priority, err := priorityOf(step, "priority")
	weight, err2 := whole(step, "weight", 1)
	if err = errors.Join(err, err2); r.left(err, expect) {
		return
	}
	var permit *tidegate.Permit
	if err == nil {
		permit, err = r.gate.TryAdmit(priority, weight)
	}
	var shed *tidegate.Shed
	if reason, ok := expect["shed"].(string); ok {
		if !errors.As(err, &shed) || shed.Reason.String() != reason || !errors.Is(err, shed.Reason) {
			r.Errorf("got %v for %v", err, step)
		}
		return
	}
	r.answered(err, expect, step)
	if permit != nil {
		over, _ := expect["over"].(bool)
		if permit.Over() != over || permit.Weight() != weight {
			r.Errorf("over %v, weight %d for %v", permit.Over(), permit.Weight(), step)
		}
		r.permits[step["as"].(string)] = permit
	}
}

func (r *runner) release(step object) error {
	name, ok := step["outcome"].(string)
	if !ok {
		return r.permits[step["permit"].(string)].Release()
	}
	outcome := tidegate.Outcome(-1) // for a name that is none
	for each := tidegate.Success; each <= tidegate.Ignore; each++ {
		if each.String() == name {
			outcome = each
		}
	}
	return r.permits[step["permit"].(string)].ReleaseAs(outcome)
}

func (r *runner) retryAfter(step, expect object) {
	priority, err := priorityOf(step, "priority")
	weight, err2 := whole(step, "weight", 1)
	if err = errors.Join(err, err2); r.left(err, expect) {
		return
	}
	var got time.Duration
	if err == nil {
		got, err = r.gate.RetryAfter(priority, weight)
	}
	r.answered(err, expect, step)
	switch wanted := expect["seconds"].(type) {
	case string:
		if got != map[string]time.Duration{"unknown": tidegate.Unknown, "never": tidegate.Never}[wanted] {
			r.Errorf("got %v for %v", got, step)
		}
	case json.Number:
		seconds, _ := wanted.Float64()
		if ns := seconds * 1e9; float64(got) < ns-1 || float64(got) > ns+1 {
			r.Errorf("got %v for %v", got, step)
		}
	}
}

func (r *runner) stats() any {
	stats, err := r.gate.Stats()
	if err != nil {
		r.Fatal(err)
	}
	return plain(r, stats)
}

// plain is a value as JSON has it, numbers as they are written.
func plain(r *runner, value any) any {
	text, err := json.Marshal(value)
	if err != nil {
		r.Fatal(err)
	}
	var read any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&read); err != nil {
		r.Fatal(err)
	}
	return read
}

// compare finds all that is expected in what was got, which may hold more.
func (r *runner) compare(got, expect any, about any) {
	r.Helper()
	if wanted, ok := expect.(object); ok {
		have, _ := got.(object)
		for key, each := range wanted {
			r.compare(have[key], each, fmt.Sprint(key, " in ", about))
		}
		return
	}
	if fmt.Sprint(got) != fmt.Sprint(expect) {
		r.Errorf("got %v, expected %v: %v", got, expect, about)
	}
}

// --- arguments ---

func whole(of object, key string, unless int) (int, error) {
	value, ok := of[key]
	if !ok {
		return unless, nil
	}
	number, ok := value.(json.Number)
	if !ok {
		return 0, errSkipped
	}
	read, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil {
		return 0, errSkipped
	}
	return int(read), nil
}

func priorityOf(of object, key string) (tidegate.Priority, error) {
	value, ok := of[key]
	if !ok {
		return tidegate.Default, nil
	}
	name, ok := value.(string)
	if !ok {
		return tidegate.Default, errSkipped
	}
	return tidegate.ParsePriority(name)
}

func thresholdsOf(of object) (tidegate.Thresholds, error) {
	all := tidegate.Thresholds{}
	given, _ := of["thresholds"].(object)
	for name, value := range given {
		priority, err := tidegate.ParsePriority(name)
		if err != nil {
			return nil, err
		}
		switch each := value.(type) {
		case object:
			reserve, err := whole(each, "reserve", 0)
			if err != nil {
				return nil, err
			}
			all[priority] = tidegate.Reserve(reserve)
		case json.Number:
			share, err := each.Float64()
			if err != nil {
				return nil, err
			}
			all[priority] = tidegate.Share(share)
		default:
			return nil, errSkipped
		}
	}
	return all, nil
}

func rateOf(of object) (tidegate.Rate, error) {
	burst, err := whole(of, "burst", 0)
	if err != nil {
		return tidegate.Rate{}, err
	}
	text, ok := of["rate"].(string)
	if !ok {
		if of["rate"] != nil {
			return tidegate.Rate{}, errSkipped
		}
		return tidegate.Rate{Burst: burst}, nil
	}
	if _, given := of["burst"]; given && burst == 0 {
		return tidegate.Rate{}, errSkipped // 0 stands for the default
	}
	count, unit, _ := strings.Cut(text, "/")
	per := map[string]time.Duration{"s": time.Second, "min": time.Minute, "h": time.Hour}[unit]
	number, err := strconv.ParseInt(count, 10, 64)
	if err != nil || per == 0 || strings.HasPrefix(count, "+") {
		return tidegate.Rate{}, errSkipped // a text that no numbers stand for
	}
	return tidegate.Rate{Count: int(number), Per: per, Burst: burst}, nil
}

func makeGate(of object) (*tidegate.Gate, error) {
	limit, err := whole(of, "limit", 0)
	if err != nil {
		return nil, err
	}
	rate, err := rateOf(of)
	if err != nil {
		return nil, err
	}
	thresholds, err := thresholdsOf(of)
	if err != nil {
		return nil, err
	}
	options := []tidegate.Option{tidegate.WithThresholds(thresholds), tidegate.WithRate(rate)}
	if _, ok := of["default_priority"]; ok {
		priority, err := priorityOf(of, "default_priority")
		if err != nil {
			return nil, err
		}
		options = append(options, tidegate.WithDefaultPriority(priority))
	}
	if enforce, ok := of["enforce"].(bool); ok {
		options = append(options, tidegate.WithEnforce(enforce))
	}
	name, ok := of["name"].(string)
	if !ok {
		name = "vector"
	}
	return tidegate.New(name, limit, options...)
}
