//go:build tidegate_flags

package tidegate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"tidegate"
)

func (r *runner) open(each vector) {
	gates, err := tidegate.OpenText(strings.Join(each.Toml, "\n"), "vector.toml")
	if each.Problems != nil {
		r.problems(err, each.Problems)
		return
	}
	if err != nil {
		r.Fatal(err)
	}
	r.gates = gates
	r.remember()
}

// remember keeps gates that a reload may have the file without.
func (r *runner) remember() {
	for _, gate := range r.gates.All() {
		r.seen[gate.Name()] = gate
	}
}

func (r *runner) problems(err error, wanted []object) {
	r.Helper()
	if !errors.Is(err, tidegate.ErrConfig) {
		r.Fatalf("got %v", err)
	}
	lines := strings.Split(strings.TrimPrefix(err.Error(), "tidegate: "), "\n")
	if len(lines) != len(wanted) {
		r.Errorf("%d problems, expected %d:\n%v", len(lines), len(wanted), err)
		return
	}
	for at, each := range wanted {
		key := each["key"].(string)
		if key != "" {
			key += ": "
		}
		begin := fmt.Sprintf("vector.toml, line %v: %s%s", each["line"], key, each["message"])
		if !strings.HasPrefix(lines[at], begin) {
			r.Errorf("got %q, expected %q", lines[at], begin)
		}
	}
}

func (r *runner) stepOfFile(step, expect object) {
	switch step["op"] {
	case "reload":
		r.reload(step, expect)
	case "names":
		names := []string{}
		for _, gate := range r.gates.All() {
			names = append(names, gate.Name())
		}
		r.compare(plain(r, names), expect["names"], step)
	case "gate":
		r.state(step["gate"].(string), expect)
	case "classify":
		r.classify(step, expect)
	case "explain":
		text, err := r.gates.Explain()
		if err != nil {
			r.Fatal(err)
		}
		r.compare(plain(r, strings.Split(strings.TrimSuffix(text, "\n"), "\n")), expect["text"], step)
	default:
		r.Fatalf("no such call: %v", step)
	}
}

func (r *runner) reload(step, expect object) {
	lines := []string{}
	for _, line := range step["toml"].([]any) {
		lines = append(lines, line.(string))
	}
	changes, err := r.gates.ReloadText(strings.Join(lines, "\n"))
	if problems, ok := expect["problems"].([]any); ok {
		wanted := []object{}
		for _, each := range problems {
			wanted = append(wanted, each.(object))
		}
		r.problems(err, wanted)
		return
	}
	if err != nil {
		r.Errorf("got %v for %v", err, step)
	}
	if changes == nil {
		changes = []string{}
	}
	r.compare(plain(r, changes), expect["changes"], step)
	r.remember()
}

func (r *runner) state(name string, expect object) {
	stats := r.stats().(object)
	weights := []any{}
	for _, priority := range tidegate.Priorities() {
		weights = append(weights, stats["thresholds"].(object)[priority.String()])
	}
	rate, err := r.gate.Rate()
	if err != nil || r.gate.Name() != name {
		r.Fatal(err, r.gate.Name())
	}
	stats["thresholds"], stats["rate"] = weights, nil
	if rate.Per != 0 {
		stats["rate"] = object{"count": rate.Count, "seconds": int(rate.Per / time.Second), "burst": rate.Burst}
	}
	r.compare(stats, expect, "the state of "+name)
}

func (r *runner) classify(step, expect object) {
	attributes := []tidegate.Attribute{}
	for name, value := range step["attributes"].(object) {
		attributes = append(attributes, tidegate.Attribute{Name: name, Value: value.(string)})
	}
	priority, why, err := r.gates.ClassifyWhy(attributes...)
	quick, err2 := r.gates.Classify(attributes...)
	if err != nil || err2 != nil || quick != priority {
		r.Fatal(err, err2, quick, priority)
	}
	wanted := tidegate.Default
	if name, ok := expect["priority"].(string); ok {
		wanted, _ = tidegate.ParsePriority(name)
	}
	if priority != wanted {
		r.Errorf("got %v for %v", priority, step)
	}
	if text, ok := expect["why"].(string); ok && why != text {
		r.Errorf("got %q, expected %q", why, text)
	}
	if rule, ok := expect["rule"]; ok {
		said := "no rule matches"
		if rule != nil {
			said = fmt.Sprintf(", by rule %v", rule)
		}
		if !strings.Contains(why, said) {
			r.Errorf("got %q, expected %q", why, said)
		}
	}
}

// classifier writes the classifier as the file that has it.
func (r *runner) classifier(each vector) {
	lines := []string{"[classifier]"}
	for key, value := range each.Classifier {
		lines = append(lines, fmt.Sprintf("%s = %s", key, asToml(value)))
	}
	gates, err := tidegate.OpenText(strings.Join(lines, "\n"), "vector.toml")
	if each.Expect != nil {
		r.answered(err, each.Expect, each.Classifier)
		return
	}
	if err != nil {
		r.Fatal(err)
	}
	r.gates = gates
	for _, request := range each.Cases {
		r.classify(request, request["expect"].(object))
	}
}

func asToml(value any) string {
	parts := []string{}
	switch of := value.(type) {
	case object:
		for key, each := range of {
			parts = append(parts, fmt.Sprintf("%q = %s", key, asToml(each)))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	case []any:
		for _, each := range of {
			parts = append(parts, asToml(each))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	default:
		text, _ := json.Marshal(of)
		return string(text)
	}
}
