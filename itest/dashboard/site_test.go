//go:build unix

package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/web"
)

// site is a dashboard of queues with a prefix of the test's own.
type site struct {
	*redistest.Bench
	rdb *delayed.Store
	url string // of the overview
	log *redistest.Log

	acts int // what was done in a browser so far
}

const queueName = "mail"

// asAdmin lets everybody in as an admin.
var asAdmin = web.Config{
	Title: "test", Refresh: 200 * time.Millisecond,
	Authorize: func(*http.Request) (web.User, error) { return web.User{Name: "ann", Role: web.Admin}, nil },
}

// calm lets live pages change seldom, for tests that only look at them.
func calm(cfg web.Config) web.Config {
	cfg.Refresh = 10 * time.Second
	return cfg
}

// newSite starts a dashboard. It is mounted below a path, as those within other programs are.
func newSite(t testing.TB, cfg web.Config) *site {
	t.Helper()
	server := redistest.Shared(t)
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	s := &site{Bench: redistest.NewBench(t, server), log: new(redistest.Log)}
	prefix := s.Name + ":"
	s.rdb = rdb.WithPrefix(prefix)
	s.Name = prefix + queueName
	s.Log = s.log
	cfg.OnError = func(r *http.Request, err error) {
		if r.Context().Err() == nil {
			t.Errorf("the dashboard failed at %s: %v", r.URL, err)
		}
	}
	h, err := web.New(s.rdb, cfg)
	s.Must(err)
	mux := http.NewServeMux()
	mux.Handle("/queues/", http.StripPrefix("/queues", h))
	mux.Handle("/favicon.ico", http.NotFoundHandler())
	srv := httptest.NewServer(mux)
	t.Cleanup(func() {
		s.Must(h.Close())
		srv.Close()
	})
	s.url = srv.URL + "/queues/"
	return s
}

// The functions of the tests' worker.

func welcome(_ context.Context, user int64, lang string) string { return lang }

func bounces(context.Context, int64) error { return errors.New("550 mailbox full") }

func digest(context.Context, string, ...int) {}

// imports runs until the worker stops.
func imports(ctx context.Context, file string) error {
	if err := delayed.Progress(ctx, 3, 10, "reading "+file); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// functions are those of a worker, by the names that tasks carry.
func functions() []any {
	return []any{
		delayed.Func(welcome, delayed.Name("mail.Welcome"), delayed.Retention(time.Hour)),
		delayed.Func(bounces, delayed.Name("mail.Bounces")),
		delayed.Func(digest, delayed.Name("mail.Digest"), delayed.Gather(delayed.GatherPolicy{
			Grace: time.Hour, MaxSize: 100,
		})),
		delayed.Func(imports, delayed.Name("mail.Import")),
	}
}

// work runs a worker until the test ends.
func (s *site) work(cfg delayed.WorkerConfig, fns ...any) *delayed.Worker {
	s.T.Helper()
	cfg.Queues, cfg.Logger = delayed.Strict{queueName}, s.log.Logger()
	if cfg.Concurrency == 0 {
		cfg.Concurrency = 4
	}
	if cfg.HeartbeatLife == 0 {
		cfg.HeartbeatLife, cfg.SweepInterval = 4*time.Second, time.Second
	}
	cfg.Grace, cfg.CancelGrace = -1, 5*time.Second
	cfg.Backoff = func(int) time.Duration { return time.Hour }
	w, err := delayed.NewWorker(s.rdb, cfg)
	s.Must(err)
	s.Must(w.Register(fns...))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	s.T.Cleanup(func() {
		cancel()
		if err := redistest.Await(s.Bench, "the worker's end", done); err != nil {
			s.T.Error(err)
		}
	})
	return w
}

// forgotten is the page of a task whose function has a long path, which no worker knows.
const forgotten = "task?queue=" + queueName + "&id=forgotten+0"

// fill brings the queue to where it has tasks in every state, a worker, a periodic entry and a group.
func (s *site) fill() {
	s.T.Helper()
	q := delayed.NewQueue(queueName, s.rdb)
	fns := functions()
	welcome, bounces, digest, imports := fns[0], fns[1], fns[2], fns[3]
	add := func(q *delayed.Queue, fn any, args ...any) {
		s.T.Helper()
		_, err := q.Delay(fn, args...)
		s.Must(err)
	}
	unknown := delayed.NewGoTask("github.com/example/shop/internal/newsletters/mail.Forgotten", "ann@example.com")
	for i := range 3 {
		add(q, welcome, 40+i, "en")
		add(q.With(delayed.In(time.Hour)), welcome, 50+i, "de")
		add(q, bounces, 60+i)
		add(q.With(delayed.MaxRetry(0)), bounces, 70+i)
		_, err := q.With(delayed.TaskID(fmt.Sprint("forgotten ", i))).Enqueue(s.T.Context(), unknown)
		s.Must(err)
		add(q.With(delayed.Group("daily")), digest, "ann", i)
	}
	add(q, imports, "users.csv")
	s.Must(q.Periodic().Set(s.T.Context(), delayed.Entry{
		Name: "nightly", Spec: "0 3 * * *", Task: delayed.Call(welcome, 1, "en"),
	}))
	s.work(delayed.WorkerConfig{}, fns...)
	ins, err := inspect.New(s.rdb, inspect.Config{})
	s.Must(err)
	s.Until("all tasks have run", func() bool {
		q, err := ins.Queue(s.T.Context(), queueName)
		s.Must(err)
		return q.Pending == 0 && q.Active == 1 && q.Completed == 3 && q.Retry == 3 && q.Archived == 3 &&
			q.Parked == 3 && q.Workers == 1
	})
}

// published returns the functions that workers of the queue have published.
func (s *site) published() []inspect.Function {
	s.T.Helper()
	ins, err := inspect.New(s.rdb, inspect.Config{})
	s.Must(err)
	fns, err := ins.Functions(s.T.Context(), queueName)
	s.Must(err)
	return fns
}
