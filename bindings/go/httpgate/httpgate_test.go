package httpgate_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"tidegate"
	"tidegate/httpgate"
)

func made(t testing.TB, limit int) *tidegate.Gate {
	t.Helper()
	gate, err := tidegate.New("db", limit)
	if err != nil {
		t.Fatal(err)
	}
	return gate
}

func equal[T comparable](t testing.TB, got, wanted T, what string) {
	t.Helper()
	if got != wanted {
		t.Errorf("%s: got %v, expected %v", what, got, wanted)
	}
}

func answer(handler http.Handler, request *http.Request) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}

func TestWhatIsShedIsAnswered(t *testing.T) {
	gate := made(t, 1)
	var inner http.HandlerFunc
	handler := httpgate.Handler(gate, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { inner(w, r) }))
	var second *httptest.ResponseRecorder
	inner = func(w http.ResponseWriter, _ *http.Request) {
		equal(t, gate.InFlight(), 1, "inside")
		second = answer(handler, httptest.NewRequest("GET", "/ask", nil))
		w.WriteHeader(http.StatusTeapot)
	}
	equal(t, answer(handler, httptest.NewRequest("GET", "/", nil)).Code, http.StatusTeapot, "the first")
	equal(t, gate.InFlight(), 0, "after it")

	equal(t, second.Code, 503, "the second")
	equal(t, second.Header().Get("Content-Type"), "application/problem+json", "content type")
	seconds, err := strconv.Atoi(second.Header().Get("Retry-After"))
	if err != nil || seconds < 1 || seconds > 2 {
		t.Error("Retry-After", second.Header())
	}
	var problem map[string]any
	if err := json.Unmarshal(second.Body.Bytes(), &problem); err != nil {
		t.Fatal(err)
	}
	for key, wanted := range map[string]any{
		"type": "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity", "status": 503.0, "gate": "db",
		"reason": "limit", "priority": "critical", "retry_after": float64(seconds),
	} {
		equal(t, problem[key], wanted, key)
	}
}

func TestAQuota(t *testing.T) {
	handler := httpgate.Middleware(made(t, 0), httpgate.WithStatus(429))(http.NotFoundHandler())
	equal(t, answer(handler, httptest.NewRequest("GET", "/", nil)).Code, 429, "status")
	defer func() {
		if said := recover(); said == nil || !strings.Contains(said.(string), "418") {
			t.Error("a status that is no answer to a shed", said)
		}
	}()
	httpgate.Handler(made(t, 1), http.NotFoundHandler(), httpgate.WithStatus(418))
}

func TestOutcomes(t *testing.T) {
	gate := made(t, 1)
	gone, cancel := context.WithCancel(context.Background())
	handler := httpgate.Handler(gate, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/panic":
			panic(http.ErrAbortHandler)
		case "/gone":
			cancel()
		}
	}))
	answer(handler, httptest.NewRequest("GET", "/", nil))
	func() {
		defer func() { equal(t, recover(), any(http.ErrAbortHandler), "the panic") }()
		answer(handler, httptest.NewRequest("GET", "/panic", nil))
	}()
	answer(handler, httptest.NewRequest("GET", "/gone", nil).WithContext(gone))
	stats, _ := gate.Stats()
	equal(t, stats.Released[tidegate.Success], 1, "success")
	equal(t, stats.Released[tidegate.Ignore], 2, "ignore")
	equal(t, stats.InFlight, 0, "in flight")
}

func TestRules(t *testing.T) {
	gates, err := tidegate.OpenText(`
[gates.db]
limit = 10
[classifier]
[[classifier.rules]]
match = { method = "GET", path = "/reports/*" }
priority = "sheddable"
[[classifier.rules]]
match = { header = { x-plan = "free" } }
priority = "sheddable_plus"
[[classifier.rules]]
match = { header = { host = "pay.example" } }
priority = "critical_plus"
[[classifier.rules]]
match = { client = "192.0.2.*" }
priority = "critical"
`, "rules.toml")
	if err != nil {
		t.Fatal(err)
	}
	gate, _ := gates.Gate("db")
	var seen tidegate.Priority
	inner := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = tidegate.PriorityFrom(r.Context()) })
	handler := httpgate.Handler(gate, inner, httpgate.WithRules(gates))
	for _, each := range []struct {
		method, url, header string
		wanted              tidegate.Priority
	}{
		{"GET", "/reports/may", "", tidegate.Sheddable},
		{"POST", "/reports/may", "", tidegate.Critical}, // by the client's address
		{"POST", "/", "free", tidegate.SheddablePlus},
		{"POST", "http://pay.example/", "", tidegate.CriticalPlus},
	} {
		request := httptest.NewRequest(each.method, each.url, nil)
		if each.header != "" {
			request.Header.Set("X-Plan", each.header)
		}
		answer(handler, request)
		equal(t, seen, each.wanted, each.method+" "+each.url)
	}
	request := httptest.NewRequest("POST", "/", nil)
	request.RemoteAddr = "@" // a Unix socket
	answer(handler, request)
	equal(t, seen, tidegate.Default, "what no rule matches")
	for at := range 5000 {
		request.Header.Set("A-"+strconv.Itoa(at), "v")
	}
	equal(t, len(httpgate.Attributes(request)), 4000, "attributes of a request with too many headers")
	equal(t, answer(handler, request).Code, 200, "it is served")
}

func TestHealthChecksHaveAGateOfTheirOwn(t *testing.T) {
	gate := made(t, 0)
	var handler http.Handler
	deep, codes := 0, []int{}
	handler = httpgate.Handler(gate, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if deep++; deep <= 4 {
			codes = append(codes, answer(handler, httptest.NewRequest("GET", "/healthz", nil)).Code)
		}
	}))
	equal(t, answer(handler, httptest.NewRequest("GET", "/healthz", nil)).Code, 200, "one")
	equal(t, codes[0], 503, "the fifth at once asks the gate")
	equal(t, answer(handler, httptest.NewRequest("GET", "/healthz/x", nil)).Code, 503, "another path")
	stats, _ := gate.Stats()
	equal(t, stats.Shed[tidegate.CriticalPlus][tidegate.ReasonLimit], 1, "as critical_plus")
}

func TestAShedOfAHandlersOwn(t *testing.T) {
	recorder := httptest.NewRecorder()
	_, err := made(t, 0).TryAdmit(tidegate.Sheddable, 1)
	var shed *tidegate.Shed
	if !errors.As(err, &shed) {
		t.Fatal(err)
	}
	httpgate.WriteShed(recorder, shed, 503)
	equal(t, recorder.Code, 503, "status")
	httpgate.WriteShed(httptest.NewRecorder(), &tidegate.Shed{Reason: tidegate.ReasonRate}, 1)
}
