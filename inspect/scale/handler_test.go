package scale_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/scale"
	"github.com/godelayed/delayed/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.SideBySide()
	os.Exit(redistest.Main(m))
}

// patience is how long an answer may take, on a machine that stalls.
const patience = 30 * time.Second

// inspector returns an inspector and a handle of a server, behind a prefix of the test's own.
func inspector(t *testing.T, server *redistest.Server) (*inspect.Inspector, *delayed.Store) {
	t.Helper()
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	rdb = rdb.WithPrefix(redistest.Name(t) + ":")
	ins, err := inspect.New(rdb, inspect.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return ins, rdb
}

// get asks a handler.
func get(t *testing.T, h http.Handler, query string) (status int, body string, answer scale.Answer) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/scale"+query, nil))
	if w.Code == http.StatusOK {
		decoder := json.NewDecoder(strings.NewReader(w.Body.String()))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&answer); err != nil || w.Header().Get("Content-Type") != "application/json" {
			t.Fatalf("%v, %v\n%s", err, w.Header(), w.Body)
		}
	}
	return w.Code, w.Body.String(), answer
}

// TestAnswer: what waits, of which queues, and how many workers that wants.
func TestAnswer(t *testing.T) {
	t.Parallel()
	ins, rdb := inspector(t, redistest.Shared(t))
	for name, n := range map[string]int{"mail": 3, "news": 2} {
		for range n {
			if _, err := delayed.NewQueue(name, rdb).Enqueue(t.Context(), delayed.NewGoTask("f")); err != nil {
				t.Fatal(err)
			}
		}
	}
	h := scale.Handler(ins, scale.Config{Concurrency: 10, Timeout: patience})
	status, body, a := get(t, h, "")
	if status != 200 || a.Pending != 5 || len(a.Queues) != 2 || a.Queues[0].Name != "mail" ||
		a.Queues[0].Pending != 3 || a.WantedWorkers != 1 || a.TargetSeconds != 60 || a.Unmeasured != 5 ||
		a.Workers != 0 || a.At == nil {
		t.Errorf("%d %s", status, body)
	}
	if _, body, a := get(t, h, "?queue=news&target=90s&concurrency=5"); a.Pending != 2 || len(a.Queues) != 1 ||
		a.TargetSeconds != 90 {
		t.Error(body)
	}
	if _, body, a := get(t, h, "?queue=news&queue=mail"); a.Pending != 5 {
		t.Error(body)
	}
	h = scale.Handler(ins, scale.Config{Queues: []string{"news"}, Timeout: patience})
	if _, body, a := get(t, h, ""); a.Pending != 2 {
		t.Error(body)
	}
	if status, body, _ := get(t, h, "?queue=mail"); status != 404 || !strings.Contains(body, "none of those") {
		t.Errorf("a queue that is not scaled here: %d %s", status, body)
	}
}

// TestWantedWorkers follows from how long handlers have run.
func TestWantedWorkers(t *testing.T) {
	t.Parallel()
	ins, rdb := inspector(t, redistest.Shared(t))
	q := delayed.NewQueue("mail", rdb)
	const took = 20 * time.Millisecond
	sleeps := delayed.Func(func() { <-time.After(took) }, delayed.Name("sleeps"))
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"mail"},
		Limits: delayed.WorkerLimits{MaxTasks: 1, StopWhenEmpty: true}, HeartbeatLife: 10 * time.Second,
		Logger: new(redistest.Log).Logger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register(sleeps); err != nil {
		t.Fatal(err)
	}
	for range 101 {
		if _, err := q.Delay(sleeps); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := scale.Handler(ins, scale.Config{Target: took, Concurrency: 10, Timeout: patience})
	_, body, a := get(t, h, "")
	if _, body, more := get(t, h, "?concurrency=1"); more.WantedWorkers < 10*(a.WantedWorkers-1) {
		t.Errorf("one task at once in place of ten: %s", body)
	}
	if a.Pending != 100 || a.Unmeasured != 0 || a.WorkSeconds < 100*took.Seconds() ||
		a.Queues[0].MeanRunSeconds < took.Seconds() || a.BacklogSeconds != a.WorkSeconds || a.WantedWorkers < 10 {
		t.Errorf("100 tasks of at least %v: %s", took, body)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	ins, _ := inspector(t, redistest.Shared(t))
	h := scale.Handler(ins, scale.Config{Timeout: patience})
	for query, want := range map[string]int{
		"?target=x": 400, "?target=0s": 400, "?target=-1s": 400, "?concurrency=0": 400, "?concurrency=x": 400,
		"?queue=a;b": 400, "?queue=%zz": 400, "?target=1s&target=2s": 400, "?concurrency=1&concurrency=2": 400,
		"?nonsense=1": 400, "?queue=nobody": 404, "?queue=": 404, "?queue=%1b%5b31m": 404,
	} {
		status, body, _ := get(t, h, query)
		if status != want || !strings.HasPrefix(body, "scale: ") || strings.Contains(body, "\x1b") {
			t.Errorf("%s: expected %d, found %d %q", query, want, status, body)
		}
	}
	status, body, a := get(t, h, "")
	if status != 200 || a.WantedWorkers != 0 || !strings.Contains(body, `"queues":[]`) {
		t.Errorf("without queues: %d %s", status, body)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/scale", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
	for name, h := range map[string]http.Handler{
		"no inspector":    scale.Handler(nil, scale.Config{}),
		"target below 0":  scale.Handler(ins, scale.Config{Target: -1}),
		"timeout below 0": scale.Handler(ins, scale.Config{Timeout: -1}),
		"concurrency":     scale.Handler(ins, scale.Config{Concurrency: -1}),
	} {
		if status, body, _ := get(t, h, ""); status != 500 || !strings.HasPrefix(body, "scale: ") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}

// TestRedisThatDoesNotAnswer: a request ends within the timeout, also if it waits for its turn, and tells no address.
func TestRedisThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	ins, rdb := inspector(t, server)
	if err := rdb.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Pause(t)
	h := scale.Handler(ins, scale.Config{Timeout: 50 * time.Millisecond})
	answers := make(chan string, 3)
	for range cap(answers) {
		go func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/scale", nil))
			answers <- http.StatusText(w.Code) + " " + w.Body.String()
		}()
	}
	for range cap(answers) {
		select {
		case got := <-answers:
			if !strings.HasPrefix(got, "Service Unavailable scale: ") || strings.Contains(got, server.Addr()) {
				t.Error(got)
			}
		case <-time.After(patience):
			t.Fatal("no answer")
		}
	}
	server.Resume(t)
	if status, body, _ := get(t, scale.Handler(ins, scale.Config{Timeout: patience}), ""); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}
