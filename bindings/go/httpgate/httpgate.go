// Package httpgate puts a gate before an http.Handler:
//
//	http.ListenAndServe(":8080", httpgate.Handler(gate, mux))
//
// A request holds its permit until its handler has returned. What is shed gets a 503 with Retry-After and a problem
// document (RFC 9457). What a handler does inside with the same gate (sqlgate) takes no second place.
package httpgate

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"tidegate"
)

// HealthPaths do not ask the gate, unless [WithHealthPaths] says otherwise: a full service is not a dead one.
var HealthPaths = []string{"/health", "/healthz", "/livez", "/readyz"}

// healthLimit is how many health checks may be in flight besides; further ones ask the gate, as CriticalPlus.
const healthLimit = 4

// Option is something about the edge that is not as by default.
type Option func(*edge)

// WithStatus is the status of a shed: 503, or 429 where the gate is a client's quota.
func WithStatus(status int) Option { return func(e *edge) { e.status = status } }

// WithPriority says which priority a request has; of several the first that does not say Default decides. Gates inside
// use it, too.
func WithPriority(of func(*http.Request) tidegate.Priority) Option {
	return func(e *edge) { e.priorityOf = append(e.priorityOf, of) }
}

// WithRules takes the priority from a file's rules on method, path, client and header.NAME: see [Attributes].
func WithRules(gates *tidegate.Gates) Option {
	return WithPriority(func(request *http.Request) tidegate.Priority {
		priority, err := gates.Classify(Attributes(request)...)
		if err != nil {
			return tidegate.Default
		}
		return priority
	})
}

// WithHealthPaths are the paths of health checks, compared exactly, in place of [HealthPaths].
func WithHealthPaths(paths ...string) Option {
	return func(e *edge) { e.healthPaths = paths }
}

type edge struct {
	gate        *tidegate.Gate
	health      *tidegate.Gate
	next        http.Handler
	status      int
	priorityOf  []func(*http.Request) tidegate.Priority
	healthPaths []string
}

// Handler puts the gate before a handler. It panics for a status that is no answer to a shed, as http.Handle does for
// a pattern that is none.
func Handler(gate *tidegate.Gate, next http.Handler, options ...Option) http.Handler {
	made := &edge{gate: gate, next: next, status: http.StatusServiceUnavailable, healthPaths: HealthPaths}
	for _, option := range options {
		option(made)
	}
	if _, known := problems[made.status]; !known {
		panic("httpgate: status must be 503 or 429, got " + strconv.Itoa(made.status))
	}
	var err error
	if made.health, err = tidegate.New("health", healthLimit); err != nil {
		panic(err) // the library is of another version
	}
	return made
}

// Middleware is [Handler] for routers that take one.
func Middleware(gate *tidegate.Gate, options ...Option) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler { return Handler(gate, next, options...) }
}

// ServeHTTP lets a request in, or answers that it cannot.
func (e *edge) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	priority := e.priority(request)
	if priority != tidegate.Default {
		request = request.WithContext(tidegate.WithPriority(request.Context(), priority))
	}
	serve := func(ctx context.Context) error {
		e.next.ServeHTTP(writer, request.WithContext(ctx))
		return ctx.Err() // whose client has gone says nothing about the resource
	}
	var err error
	if e.isHealthCheck(request) {
		if err = e.health.Do(request.Context(), tidegate.Default, serve); errors.Is(err, tidegate.ErrShed) {
			err = e.gate.Do(request.Context(), tidegate.CriticalPlus, serve)
		}
	} else {
		err = e.gate.Do(request.Context(), priority, serve)
	}
	var shed *tidegate.Shed
	switch {
	case errors.As(err, &shed):
		WriteShed(writer, shed, e.status)
	case err != nil && request.Context().Err() == nil:
		http.Error(writer, "this service is not set up right", http.StatusInternalServerError)
	}
}

func (e *edge) priority(request *http.Request) tidegate.Priority {
	for _, of := range e.priorityOf {
		if priority := of(request); priority != tidegate.Default {
			return priority
		}
	}
	return tidegate.Default
}

func (e *edge) isHealthCheck(request *http.Request) bool {
	for _, path := range e.healthPaths {
		if request.URL.Path == path {
			return true
		}
	}
	return false
}

type problem struct {
	Type       string            `json:"type"`
	Title      string            `json:"title"`
	Status     int               `json:"status"`
	Gate       string            `json:"gate"`
	Reason     tidegate.Reason   `json:"reason"`
	Priority   tidegate.Priority `json:"priority"`
	RetryAfter int               `json:"retry_after"`
}

// problems are types and titles as registered with IANA.
var problems = map[int][2]string{
	503: {"temporary-reduced-capacity", "Request cannot be satisfied due to temporary server capacity constraints"},
	429: {"quota-exceeded", "Request cannot be satisfied as assigned quota has been exceeded"},
}

// WriteShed answers a shed, with 503 or 429: for handlers that asked a gate themselves. How full the gate is stays
// inside: that is not for clients to know.
func WriteShed(writer http.ResponseWriter, shed *tidegate.Shed, status int) {
	known, ok := problems[status]
	if !ok {
		status, known = http.StatusServiceUnavailable, problems[http.StatusServiceUnavailable]
	}
	after := shed.RetryAfterHeader()
	seconds, _ := strconv.Atoi(after)
	name := ""
	if shed.Gate() != nil {
		name = shed.Gate().Name()
	}
	body, _ := json.Marshal(problem{
		"https://iana.org/assignments/http-problem-types#" + known[0], known[1],
		status, name, shed.Reason, shed.Priority, seconds,
	})
	writer.Header().Set("Content-Type", "application/problem+json")
	writer.Header().Set("Retry-After", after)
	writer.WriteHeader(status)
	_, _ = writer.Write(body)
}
