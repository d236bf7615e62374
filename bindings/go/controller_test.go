//go:build tidegate_flags

package tidegate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"tidegate"
	"tidegate/internal/hooks"
)

func controllerOf(t testing.TB, gate *tidegate.Gate) tidegate.ControllerReport {
	t.Helper()
	report, err := gate.Controller()
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// aSecond is one in which all of so many are inside together, and come back with the outcome.
func aSecond(t testing.TB, gate *tidegate.Gate, from uint64, inside int, outcome tidegate.Outcome) {
	t.Helper()
	hooks.SetClock(from * 1e9)
	permits := []*tidegate.Permit{}
	for range inside {
		permits = append(permits, admitted(t, gate, tidegate.Critical, 1))
	}
	hooks.SetClock((from + 1) * 1e9)
	for _, permit := range permits {
		equal(t, permit.ReleaseAs(outcome), nil, "release")
	}
}

func TestAControllerMovesTheLimit(t *testing.T) {
	hooks.SetClock(0)
	aimd := tidegate.Controller{Kind: tidegate.ControllerAIMD, Min: 4, Max: 200}
	gate := made(t, 20, tidegate.WithController(aimd), tidegate.WithObjective(2500*time.Millisecond))
	first := tidegate.ControllerReport{Kind: tidegate.ControllerAIMD, Min: 4, Max: 200, Prior: 20, Objective: 2500 * time.Millisecond}
	equal(t, controllerOf(t, gate), first, "before anything")
	history, err := gate.LimitHistory()
	if err != nil || history == nil || len(history) != 0 {
		t.Error("a history before anything", history, err)
	}
	for second := range uint64(6) {
		aSecond(t, gate, second, 20, tidegate.Success)
	}
	raised := gate.Limit()
	for second := uint64(6); second < 12; second++ {
		aSecond(t, gate, second, 12, tidegate.Overload)
	}
	if raised <= 20 || gate.Limit() >= raised {
		t.Error("limits", raised, gate.Limit())
	}
	report := controllerOf(t, gate)
	equal(t, report.Cause, tidegate.CauseLower, "cause")
	equal(t, report.Probes, 0, "probes")
	equal(t, report.Window.Completions, report.Window.Overload, "completions")
	equal(t, report.Window.Good, 0, "good")
	if report.Looks <= report.Moves || report.Window.Overload < 12 || report.Window.Elapsed < time.Second ||
		report.Window.Admissions == 0 || report.Window.Refusals != 0 {
		t.Errorf("%+v", report)
	}

	history, err = gate.LimitHistory()
	if err != nil || uint64(len(history)) != report.Moves {
		t.Fatal(history, err)
	}
	begin, end := history[0], history[len(history)-1]
	equal(t, begin, tidegate.LimitChange{From: 20, To: 21, Age: begin.Age, Cause: "raise"}, "the first change")
	equal(t, end, tidegate.LimitChange{From: end.From, To: gate.Limit(), Age: end.Age, Cause: "lower"}, "the last change")
	if begin.Age <= end.Age || begin.Age > 12*time.Second || begin.Age%time.Second != 0 {
		t.Error("ages", begin.Age, end.Age)
	}

	for _, limit := range []int{-1, 0, 3, 201, tidegate.Auto} {
		refused(t, gate.SetLimit(limit), fmt.Sprintf("limit must be a whole number from 4 to 200, got %d", limit), "by hand")
	}
	equal(t, gate.SetLimitCause(50, "by hand"), nil, "by hand")
	equal(t, controllerOf(t, gate).Prior, 50, "it starts anew")
	history, _ = gate.LimitHistory()
	equal(t, history[len(history)-1], tidegate.LimitChange{From: end.To, To: 50, Cause: "by hand"}, "by hand")
	for range 3 {
		_, _ = gate.TryAdmit(tidegate.CriticalPlus, 51)
	}
	aSecond(t, gate, 12, 30, tidegate.Success) // the first to leave ends the window
	window := tidegate.Window{Elapsed: time.Second, Completions: 1, Good: 1, Admissions: 30, Refusals: 3}
	equal(t, controllerOf(t, gate).Window, window, "a window")
	aSecond(t, gate, 13, 30, tidegate.Success)
	window = tidegate.Window{Elapsed: time.Second, Completions: 30, Good: 30, Admissions: 30}
	equal(t, controllerOf(t, gate).Window, window, "the next")
}

func TestWhereAControllerStarts(t *testing.T) {
	goodput := tidegate.ControllerGoodput
	for _, each := range []struct {
		limit      int
		controller tidegate.Controller
		starts     int
	}{
		{tidegate.Auto, tidegate.Controller{Kind: goodput}, 32},
		{20, tidegate.Controller{Kind: goodput}, 20},
		{20, tidegate.Controller{Kind: goodput, Ceiling: 10}, 10},
		{20, tidegate.Controller{Kind: goodput, Prior: 29}, 29},
		{tidegate.Auto, tidegate.Controller{Kind: goodput, Min: 4, Max: 200}, 28},
		{tidegate.Auto, tidegate.Controller{Kind: goodput, Min: 2000}, 2000},
		{tidegate.Auto, tidegate.Controller{Kind: goodput, Max: largest, Prior: largest}, largest},
	} {
		gate := made(t, each.limit, tidegate.WithController(each.controller))
		equal(t, gate.Limit(), each.starts, fmt.Sprintf("%d, %+v", each.limit, each.controller))
		equal(t, controllerOf(t, gate).Prior, each.starts, "prior")
		equal(t, controllerOf(t, gate).Objective, 0, "objective")
	}
	for kind := tidegate.ControllerFixed; kind <= goodput; kind++ {
		equal(t, controllerOf(t, made(t, 3, tidegate.WithController(tidegate.Controller{Kind: kind}))).Kind, kind, "kind")
	}
	for _, plain := range []*tidegate.Gate{made(t, 3), made(t, 3, tidegate.WithController(tidegate.Controller{}))} {
		equal(t, controllerOf(t, plain), tidegate.ControllerReport{}, "without one")
	}
}

// D16, for what moves a limit.
func TestWhatNoControllerCanBe(t *testing.T) {
	wrong := func(limit int, controller tidegate.Controller, kind error, text string) {
		t.Helper()
		_, err := tidegate.New("db", limit, tidegate.WithController(controller))
		if !errors.Is(err, kind) || !strings.Contains(fmt.Sprint(err), text) {
			t.Errorf("%d, %+v: %v", limit, controller, err)
		}
	}
	vegas := tidegate.ControllerVegas
	for _, number := range outside {
		got := fmt.Sprintf(" must be a whole number from 1 to 2147483647, or 0 for its default, got %d", number)
		wrong(20, tidegate.Controller{Kind: vegas, Min: number}, tidegate.ErrArgument, "controller.min"+got)
		wrong(20, tidegate.Controller{Kind: vegas, Max: number}, tidegate.ErrArgument, "controller.max"+got)
		wrong(20, tidegate.Controller{Kind: vegas, Ceiling: number}, tidegate.ErrArgument, "controller.ceiling"+got)
		wrong(20, tidegate.Controller{Kind: vegas, Prior: number}, tidegate.ErrArgument, "controller.prior"+got)
		if number != tidegate.Auto {
			got = fmt.Sprintf("limit must be a whole number from 0 to 2147483647, got %d", number)
			wrong(number, tidegate.Controller{Kind: vegas}, tidegate.ErrArgument, got)
		}
	}
	for _, kind := range []tidegate.ControllerKind{-1, 6, math.MinInt32, math.MaxInt32} {
		wrong(20, tidegate.Controller{Kind: kind}, tidegate.ErrArgument, fmt.Sprintf("goodput), and controller.reserved 0, or all of controller 0 for none, got %d", kind))
	}
	wrong(20, tidegate.Controller{Min: 4}, tidegate.ErrArgument, "controller.kind must be 1 (fixed)")
	wrong(20, tidegate.Controller{Kind: vegas, Min: 30}, tidegate.ErrConfig, "must be from min (30) to max (1000), got 20")
	wrong(0, tidegate.Controller{Kind: vegas}, tidegate.ErrConfig, "must be from min (1) to max (1000), got 0")
	wrong(20, tidegate.Controller{Kind: vegas, Min: 30, Ceiling: 5}, tidegate.ErrConfig, "ceiling must be at least min (30), got 5")
	wrong(tidegate.Auto, tidegate.Controller{}, tidegate.ErrArgument, "or Auto with a controller")

	for _, objective := range []time.Duration{0, -1, math.MinInt64} {
		_, err := tidegate.New("db", 20, tidegate.WithObjective(objective))
		refused(t, err, objective, "objective")
	}
	for _, objective := range []time.Duration{1, 1234567891, time.Hour, 1000 * time.Hour} {
		gate := made(t, 20, tidegate.WithController(tidegate.Controller{Kind: vegas}), tidegate.WithObjective(objective))
		equal(t, controllerOf(t, gate).Objective, objective, "objective")
	}
}

func TestAHistoryKeepsTheLast64(t *testing.T) {
	gate := made(t, 1000)
	for limit := range 100 {
		equal(t, gate.SetLimitCause(limit, strings.Repeat("ü", limit)), nil, "limit")
	}
	history, err := gate.LimitHistory()
	if err != nil || len(history) != 64 {
		t.Fatal(len(history), err)
	}
	for at, change := range history {
		equal(t, change.From, 35+at, "from")
		equal(t, change.To, 36+at, "to")
		equal(t, change.Cause, strings.Repeat("ü", 31), "cause, up to 63 bytes")
	}
}

func TestControllersAndCausesAsJSON(t *testing.T) {
	gate := made(t, 5, tidegate.WithController(tidegate.Controller{Kind: tidegate.ControllerGradient2}))
	text, err := json.Marshal(controllerOf(t, gate))
	if err != nil || !strings.HasPrefix(string(text), `{"kind":"gradient2","min":1,"max":1000,"prior":5,"cause":"hold",`) {
		t.Error(string(text), err)
	}
	said := fmt.Sprint(tidegate.NoController, tidegate.ControllerFixed, tidegate.ControllerAIMD, tidegate.ControllerVegas,
		tidegate.ControllerGoodput, tidegate.ControllerKind(6), tidegate.ControllerKind(-1), tidegate.CauseProbe,
		tidegate.CauseRaise, tidegate.CauseLower, tidegate.CauseLost, tidegate.Cause(5), tidegate.Cause(-1))
	equal(t, said, "none fixed aimd vegas goodput ControllerKind(6) ControllerKind(-1) probe raise lower lost Cause(5) Cause(-1)", "names")
}
