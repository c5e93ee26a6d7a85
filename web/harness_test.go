package web_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/web"
)

func TestMain(m *testing.M) {
	redistest.SideBySide()
	os.Exit(redistest.Main(m))
}

var bg = context.Background()

// bench is a dashboard of a queue "mail", and of others that a test makes, behind a prefix of its own.
type bench struct {
	*redistest.Bench
	rdb *delayed.Store
	q   *delayed.Queue
	ins *inspect.Inspector
	h   *web.Handler
	log *redistest.Log
}

const queueName = "mail"

// secret returns the token of the user of a role.
func secret(r web.Role) string { return "secret of the " + r.String() }

// newBench returns a dashboard with users "viewer", "operator" and "admin".
func newBench(t *testing.T, change ...func(*web.Config)) *bench {
	t.Helper()
	server := redistest.Shared(t)
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	b := &bench{Bench: redistest.NewBench(t, server), log: new(redistest.Log)}
	b.rdb = rdb.WithPrefix(b.Name + ":")
	b.Name += ":" + queueName
	b.Log = b.log
	b.q = delayed.NewQueue(queueName, b.rdb)
	b.ins, err = inspect.New(b.rdb, inspect.Config{Actor: "test"})
	b.Must(err)
	cfg := web.Config{Refresh: 100 * time.Millisecond}
	for r := web.Viewer; r <= web.Admin; r++ {
		cfg.Tokens = append(cfg.Tokens, web.Token{User: web.User{Name: r.String(), Role: r}, Secret: secret(r)})
	}
	for _, f := range change {
		f(&cfg)
	}
	b.h, err = web.New(b.rdb, cfg)
	b.Must(err)
	t.Cleanup(func() { b.h.Close() })
	return b
}

// answer is what the dashboard answers.
type answer struct {
	Status int
	Header http.Header
	Body   string
}

// ask sends a request as the user of a role.
func (b *bench) ask(r web.Role, method, address string, form url.Values) answer {
	b.T.Helper()
	req := httptest.NewRequest(method, "/"+address, strings.NewReader(form.Encode()))
	req.Header.Set("Authorization", "Bearer "+secret(r))
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	b.h.ServeHTTP(w, req)
	body, err := io.ReadAll(w.Result().Body)
	b.Must(err)
	return answer{w.Code, w.Header(), string(body)}
}

// get returns a page as the user of a role sees it.
func (b *bench) get(r web.Role, address string) string {
	b.T.Helper()
	a := b.ask(r, http.MethodGet, address, nil)
	if a.Status != http.StatusOK {
		b.T.Fatalf("%s answers %d:\n%s", address, a.Status, a.Body)
	}
	return a.Body
}

// do sends the form of a action, with names and values of its fields, and returns the page that comes then, with its
// notice. It fails the test unless the browser is sent there.
func (b *bench) do(r web.Role, address, action string, fields ...string) string {
	b.T.Helper()
	a := b.post(r, address, action, fields...)
	if a.Status != http.StatusSeeOther {
		b.T.Fatalf("%s of %s answers %d:\n%s", action, address, a.Status, a.Body)
	}
	return b.get(r, strings.TrimLeft(a.Header.Get("Location"), "./"))
}

// post sends the form of a action.
func (b *bench) post(r web.Role, address, action string, fields ...string) answer {
	b.T.Helper()
	form := url.Values{"do": {action}, "back": {address}}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	path, _, _ := strings.Cut(address, "?")
	return b.ask(r, http.MethodPost, path, form)
}

// refused fails the test unless a role may not do something.
func (b *bench) refused(r web.Role, address, action string, fields ...string) {
	b.T.Helper()
	if a := b.post(r, address, action, fields...); a.Status != http.StatusForbidden {
		b.T.Errorf("%v: %s of %s answers %d", r, action, address, a.Status)
	}
}

// has fails the test unless a page has all of the texts.
func (b *bench) has(page string, texts ...string) {
	b.T.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			b.T.Errorf("the page has no %q:\n%s", text, main(page))
		}
	}
}

// hasNot fails the test if a page has one of the texts.
func (b *bench) hasNot(page string, texts ...string) {
	b.T.Helper()
	for _, text := range texts {
		if strings.Contains(page, text) {
			b.T.Errorf("the page has %q:\n%s", text, main(page))
		}
	}
}

// main returns the part of a page that is not the same on all.
func main(page string) string {
	_, rest, _ := strings.Cut(page, `<div id="content">`)
	rest, _, _ = strings.Cut(rest, "</main>")
	return rest
}

// work runs a worker of the queues until the test ends, or until stop is called.
func (b *bench) work(cfg delayed.WorkerConfig, fns ...any) (w *delayed.Worker, stop func()) {
	b.T.Helper()
	if cfg.Queues == nil {
		cfg.Queues = delayed.Strict{queueName}
	}
	cfg.Concurrency, cfg.HeartbeatLife = max(cfg.Concurrency, 2), max(cfg.HeartbeatLife, 2*time.Second)
	cfg.SweepInterval, cfg.Grace, cfg.CancelGrace = 100*time.Millisecond, 5*time.Second, time.Second
	cfg.Logger = b.log.Logger()
	if cfg.Backoff == nil {
		cfg.Backoff = func(int) time.Duration { return time.Hour }
	}
	w, err := delayed.NewWorker(b.rdb, cfg)
	b.Must(err)
	b.Must(w.Register(fns...))
	ctx, cancel := context.WithCancel(bg)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := redistest.Await(b.Bench, "the worker's end", done); err != nil {
			b.T.Error(err)
		}
	}
	b.T.Cleanup(stop)
	b.Until("the worker has made itself known", func() bool {
		workers, err := b.ins.Workers(bg)
		b.Must(err)
		for i := range workers {
			if workers[i].ID == w.ID() && !workers[i].Started.IsZero() {
				return true
			}
		}
		return false
	})
	return w, stop
}
