//go:build tidegate_flags

// Overload prints the table of tests/overload: see its README.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"tidegate"
	"tidegate/internal/hooks"
)

type event struct {
	AtMs    uint64 `json:"at_ms"`
	Arrive  *int   `json:"arrive"`
	Leave   *int   `json:"leave"`
	Path    string `json:"path"`
	Weight  int    `json:"weight"`
	Outcome string `json:"outcome"`
}

type workload struct {
	File  []string `json:"file"`
	Gate  string   `json:"gate"`
	Loads []struct {
		Load   json.Number `json:"load"`
		Events []event     `json:"events"`
	} `json:"loads"`
}

type counts struct {
	Admitted  map[tidegate.Priority]uint64                     `json:"admitted"`
	Shed      map[tidegate.Priority]map[tidegate.Reason]uint64 `json:"shed"`
	Released  map[tidegate.Outcome]uint64                      `json:"released"`
	HighWater int                                              `json:"high_water"`
	InFlight  int                                              `json:"in_flight"`
}

type row struct {
	Load    json.Number                  `json:"load"`
	Offered map[tidegate.Priority]uint64 `json:"offered"`
	counts
	Stats counts `json:"stats"`
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

// load runs one load, on gates of its own.
func load(file, name string, events []event) row {
	hooks.SetClock(0)
	gates := must(tidegate.OpenText(file, "overload.toml"))
	gate := must(gates.Gate(name))
	held := map[int]*tidegate.Permit{}
	table := row{Offered: map[tidegate.Priority]uint64{}, counts: counts{
		Admitted: map[tidegate.Priority]uint64{},
		Shed:     map[tidegate.Priority]map[tidegate.Reason]uint64{},
		Released: map[tidegate.Outcome]uint64{},
	}}
	for _, event := range events {
		hooks.SetClock(event.AtMs * 1_000_000)
		switch {
		case event.Arrive != nil:
			priority := must(gates.Classify(tidegate.Attribute{Name: "path", Value: event.Path}))
			table.Offered[priority]++
			permit, err := gate.TryAdmit(priority, event.Weight)
			var shed *tidegate.Shed
			if errors.As(err, &shed) {
				if table.Shed[priority] == nil {
					table.Shed[priority] = map[tidegate.Reason]uint64{}
				}
				table.Shed[priority][shed.Reason]++
			} else {
				held[*event.Arrive] = must(permit, err)
				table.Admitted[priority]++
			}
		case event.Leave != nil:
			if permit := held[*event.Leave]; permit != nil {
				outcome := outcomeOf(event.Outcome)
				must(0, permit.ReleaseAs(outcome))
				table.Released[outcome]++
			}
		default:
			must(0, gate.Close())
		}
	}
	stats := must(gate.Stats())
	table.HighWater, table.InFlight = stats.HighWater, stats.InFlight
	table.Stats = counts{stats.Admitted, stats.Shed, stats.Released, stats.HighWater, stats.InFlight}
	return table
}

func outcomeOf(name string) tidegate.Outcome {
	for outcome := tidegate.Success; outcome <= tidegate.Ignore; outcome++ {
		if outcome.String() == name {
			return outcome
		}
	}
	return must(tidegate.Ignore, fmt.Errorf("no outcome is called %q", name))
}

func main() {
	var given workload
	must(0, json.Unmarshal(must(os.ReadFile(os.Args[1])), &given))
	rows := []row{}
	for _, each := range given.Loads {
		table := load(strings.Join(given.File, "\n"), given.Gate, each.Events)
		table.Load = each.Load
		rows = append(rows, table)
	}
	must(0, json.NewEncoder(os.Stdout).Encode(map[string]any{"language": "go", "loads": rows}))
}
