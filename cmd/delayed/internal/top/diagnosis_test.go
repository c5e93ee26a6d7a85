package top_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/cli"
	"github.com/godelayed/delayed/cmd/delayed/internal/top"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/internal/catalog"
	"github.com/godelayed/delayed/internal/metrics"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web"
)

// fleet is a Redis with a prefix of its own, and a queue "mail" there.
type fleet struct {
	*redistest.Bench
	rdb    *delayed.Store
	q      *delayed.Queue
	ins    *inspect.Inspector
	prefix string
	now    time.Time // by the clock of Redis
}

func newFleet(t *testing.T, server *redistest.Server) *fleet {
	t.Helper()
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	f := &fleet{Bench: redistest.NewBench(t, server)}
	f.prefix = f.Name + ":"
	f.rdb = rdb.WithPrefix(f.prefix)
	f.q = delayed.NewQueue("mail", f.rdb)
	f.ins, err = inspect.New(f.rdb, inspect.Config{})
	f.Must(err)
	f.now = time.UnixMilli(redistest.Time(t, f.Conn))
	f.set("HSET", "delayed_queues", "mail", 0)
	return f
}

// set calls a command on a key behind the prefix.
func (f *fleet) set(cmd, key string, args ...any) {
	f.T.Helper()
	f.Do(cmd, append([]any{f.prefix + key}, args...)...)
}

// delay enqueues n calls of a Go function that nobody has.
func (f *fleet) delay(n int, opts ...delayed.Option) {
	f.T.Helper()
	for range n {
		_, err := f.q.With(opts...).Enqueue(context.Background(), delayed.NewGoTask("app/mail.Send", []int{1}))
		f.Must(err)
	}
}

// pending adds n tasks that have been pending for some time.
func (f *fleet) pending(n int, since time.Duration) {
	f.T.Helper()
	for i := range n {
		m := wire.Message{Kind: wire.GoExtended, Path: "app/mail.Send", Meta: wire.Meta{
			ID: fmt.Sprint("old-", i), EnqueuedAt: f.now.Add(-since).UnixMilli(),
		}}
		f.set("RPUSH", "mail", m.Append(nil))
		f.set("RPUSH", "mail_noti", "1")
	}
}

// park adds n parked tasks of a function.
func (f *fleet) park(n int, path string, reason state.Reason) {
	f.T.Helper()
	kind := wire.GoExtended
	if strings.Contains(path, ":") {
		kind = wire.PyExtended
	}
	for i := range n {
		m := wire.Message{Kind: kind, Path: path, Meta: wire.Meta{ID: fmt.Sprint(path, i)}}
		info := wire.Info{Reason: reason, At: f.now.Add(-time.Minute)}
		f.set("ZADD", "mail_parked", f.now.Add(time.Hour).UnixMilli(), m.Meta.ID)
		f.set("HSET", "mail_tasks", m.Meta.ID, m.Append(nil))
		f.set("HSET", "mail_info", m.Meta.ID, info.Encode())
	}
}

// ran counts runs of a function, as workers do.
func (f *fleet) ran(function string, runs, failed uint64) {
	f.T.Helper()
	src, _, _, err := redisstore.DialSources(f.Server.URL())
	f.Must(err)
	at, _ := redisstore.GrainMinute.Truncate(f.now)
	_, err = redisstore.NewStore(src, f.prefix, "mail").AddMetrics(context.Background(), []redisstore.MetricsPart{{
		Grain: redisstore.GrainMinute, At: at, Function: function, Sample: metrics.Sample{Runs: runs, Failed: failed},
	}})
	f.Must(err)
	f.set("HINCRBY", "mail_stats:"+f.now.UTC().Format("20060102"), "failed", failed)
}

// worker is what a worker publishes of itself on the queues that it serves.
type worker struct {
	dead           bool
	claims         int
	state, version string // running, and 0.1.0, unless they are set
	program        string
	started        time.Duration // how long ago; an hour if it is not set
	runs           []string      // functions that have run for more than a second
	knows          string        // path of the function that it has published
	queues         []string      // mail if none is set
}

// work has a worker with four executors be there.
func (f *fleet) work(id string, w worker) {
	f.T.Helper()
	status := catalog.Status{
		Version: catalog.Version, Library: "0.1.0", Program: w.program, Concurrency: 4, State: "running",
		Started: f.now.Add(-time.Hour).UnixMilli(),
	}
	if w.state != "" {
		status.State = w.state
	}
	if w.version != "" {
		status.Library = w.version
	}
	if w.started > 0 {
		status.Started = f.now.Add(-w.started).UnixMilli()
	}
	for i, fn := range w.runs {
		status.Running = append(status.Running, catalog.Running{Token: fmt.Sprint(i), Function: fn, Started: 1})
	}
	text, err := json.Marshal(status)
	f.Must(err)
	list, err := json.Marshal(catalog.List{Version: catalog.Version, Functions: []catalog.Function{{Path: w.knows}}})
	f.Must(err)
	if w.queues == nil {
		w.queues = []string{"mail"}
	}
	for _, queue := range w.queues {
		f.set("HSET", "delayed_queues", queue, 0)
		f.set("SADD", queue+"_workers", id)
		f.set("HSET", queue+"_functions", id+" status", text)
		if w.knows != "" {
			f.set("HSET", queue+"_functions", id, list)
		}
		for i := range w.claims {
			f.set("HSET", queue+"_processing:"+id, i, "claimed")
		}
		if !w.dead {
			f.set("SET", queue+"_worker:"+id, "host:7:1", "PX", time.Hour.Milliseconds())
		}
	}
}

// alive has an idle worker be there.
func (f *fleet) alive() { f.work("w-1", worker{}) }

// brokenFleets are fleets, and what every look at them must find: the level, the kind, the queue, " since" if it is
// known since when, and how the text begins. Each is a line of its own; the worst comes first.
var brokenFleets = []struct {
	name  string
	redis []string // arguments of a server of its own; else settings of Redis are not looked at
	build func(*fleet)
	want  []string
}{
	{name: "nothing at all", build: func(*fleet) {}},
	{name: "a healthy one", build: func(f *fleet) { f.alive(); f.pending(3, 20*time.Second); f.ran("a", 9, 4) }},
	{
		name: "settings", redis: []string{"--maxmemory-policy", "allkeys-lru"}, build: func(*fleet) {},
		want: []string{
			"error setting : Redis at 127.0.0.1", "warning setting : Redis at 127.0.0.1",
		},
	},
	{
		name: "executors that are busy with a slow handler",
		build: func(f *fleet) {
			f.work("w-1", worker{claims: 4, runs: []string{"app/a.Build", "app/a.Build", "app/a.Build", "app/a.Build"}})
			f.pending(1234, 10*time.Minute)
		},
		want: []string{"error waiting mail since: the oldest of 1,234 pending tasks has waited for more than 5 min, " +
			"and all 4 executors are busy with a.Build"},
	},
	{
		name: "executors that are busy with several",
		build: func(f *fleet) {
			f.work("w-1", worker{claims: 9, runs: []string{"app/a.Build", "app/a.Build", "x"}})
			f.work("w-2", worker{claims: 4})
			f.pending(1, time.Minute)
		},
		want: []string{"warning waiting mail since: the oldest of 1 pending task has waited for more than 30 s, and " +
			"all 8 executors are busy, 2 of them for more than a second with a.Build"},
	},
	{
		name:  "tasks wait beside idle executors",
		build: func(f *fleet) { f.work("w-1", worker{claims: 3}); f.pending(1, 10*time.Minute) },
		want:  []string{"error waiting mail since: the oldest of 1 pending task has waited for more than 5 min"},
	},
	{
		name:  "a worker that is paused",
		build: func(f *fleet) { f.work("w-1", worker{state: "paused"}); f.pending(1, 10*time.Minute) },
		want: []string{"error waiting mail since: the oldest of 1 pending task has waited for more than 5 min, and " +
			"all its workers are paused, or stop"},
	},
	{
		name: "functions that fail",
		build: func(f *fleet) {
			f.alive()
			f.ran("app/a.Some", 100, 30)
			f.ran("app/b.All\x1b", 5, 5)
			f.ran("", 10, 5)
		},
		want: []string{
			"error failing mail since: 5 of 10 runs of other functions failed in the last 15 min (50 %)",
			`error failing mail since: 5 of 5 runs of b.All\x1b failed in the last 15 min (100 %)`,
			"warning failing mail since: 30 of 100 runs of a.Some failed in the last 15 min (30 %)",
		},
	},
	{
		name:  "few failures",
		build: func(f *fleet) { f.alive(); f.ran("a", 4, 4); f.ran("b", 1000, 99); f.ran("c", 9, 3) },
	},
	{
		name:  "a worker was killed, and nobody is left",
		build: func(f *fleet) { f.work("w-1", worker{dead: true, claims: 2}) },
		want:  []string{"error dead worker mail: a worker has died and left 2 tasks, and no other is there"},
	},
	{
		name:  "a worker was killed beside another one",
		build: func(f *fleet) { f.alive(); f.work("w-2", worker{dead: true, claims: 2}) },
		want:  []string{"warning dead worker mail: a worker has died and left 2 tasks, which the others take over"},
	},
	{
		name:  "paused, and tasks wait",
		build: func(f *fleet) { f.alive(); f.delay(2); f.set("HSET", "mail_control", "paused", f.now.UnixMilli()) },
		want:  []string{"warning paused mail since: paused, and 2 tasks wait"},
	},
	{
		name: "a long pause",
		build: func(f *fleet) {
			f.alive()
			f.set("HSET", "mail_control", "paused", f.now.Add(-3*time.Hour).UnixMilli())
		},
		want: []string{"warning paused mail since: paused"},
	},
	{
		name:  "a short pause",
		build: func(f *fleet) { f.alive(); f.set("HSET", "mail_control", "paused", f.now.UnixMilli()) },
	},
	{
		name: "an archive that is full",
		build: func(f *fleet) {
			f.alive()
			args := []any{}
			for i := range 9000 {
				args = append(args, f.now.Add(time.Hour).UnixMilli(), i)
			}
			f.set("ZADD", "mail_archived", args...)
		},
		want: []string{"warning archive mail: 9,000 archived tasks: unless they are configured otherwise, workers"},
	},
	{
		name: "parked tasks",
		build: func(f *fleet) {
			f.alive()
			f.park(3, "app/a.B", "unknown function")
			f.park(2, "app/c.D", "unknown fields")
		},
		want: []string{"error parked mail since: 5 tasks are parked because no worker can run them: a.B (unknown " +
			"function), c.D (unknown fields)"},
	},
	{
		name:  "Python's tasks without its worker",
		build: func(f *fleet) { f.alive(); f.park(1, "app.mail:send", "unknown function") },
		want: []string{
			"error parked mail since: 1 task is parked because no worker can run it: app.mail:send (unknown function)",
		},
	},
	{
		name:  "a function that workers do not know",
		build: func(f *fleet) { f.work("w-1", worker{knows: "app/x.Y"}); f.delay(2, delayed.In(time.Hour)) },
		want:  []string{"error unknown function mail: 2 tasks of app/mail.Send, which no living worker knows"},
	},
	{
		name: "entries that nobody ticks",
		build: func(f *fleet) {
			f.alive()
			f.set("ZADD", "mail_ticks", f.now.Add(-3*time.Minute).UnixMilli(), "nightly\n",
				f.now.Add(-2*time.Minute).UnixMilli(), "b", f.now.Add(-time.Second).UnixMilli(), "in time")
		},
		want: []string{
			`error no scheduler mail since: its periodic entry nightly\n and 1 other should have ticked: no sched`,
		},
	},
	{
		name:  "gathered calls without a worker",
		build: func(f *fleet) { f.delay(2, delayed.Group("g")) },
		want:  []string{"error no workers mail: 2 tasks wait, and no worker serves it"},
	},
	{
		name:  "a queue that nobody serves",
		build: func(f *fleet) { f.pending(1, time.Minute); f.delay(1, delayed.In(time.Hour)) },
		want:  []string{"error no workers mail since: 2 tasks wait, and no worker serves it"},
	},
	{
		name:  "legacy workers are not known",
		build: func(f *fleet) { f.pending(1, time.Minute); f.set("HSET", "delayed_queues", "mail", 1) },
		want:  []string{"warning waiting mail since: the oldest of 1 pending task has waited for more than 30 s"},
	},
	{
		name: "two versions of a worker on several queues",
		build: func(f *fleet) {
			f.work("w-1", worker{program: "app v1", queues: []string{"a", "b", "mail"}})
			f.work("w-2", worker{program: "app v2", queues: []string{"a", "b", "mail"}})
			f.work("w-3", worker{version: "godelayed 0.2.0"})
		},
		want: []string{
			"warning versions a since: 2 versions of workers serve it: app v1 with delayed 0.1.0 and app v2 with",
		},
	},
	{
		name:  "a deploy",
		build: func(f *fleet) { f.alive(); f.work("w-2", worker{version: "0.2.0", started: time.Minute}) },
	},
	{
		name: "suspects, lost claims and what cannot be read",
		build: func(f *fleet) {
			f.alive()
			f.set("RPUSH", "mail_suspects", "rubbish")
			f.set("RPUSH", "mail_suspects_noti", "1")
			f.set("HSET", "mail_stats:"+f.now.UTC().Format("20060102"), "lost", 1)
		},
		want: []string{
			"warning suspects mail: 1 pending task has died with a worker in the last 72 h",
			"warning unreadable mail: 1 task cannot be read",
			"warning lost claims mail: 1 task has run twice today, in part at least, because workers had lost",
		},
	},
	{
		name: "another program's key",
		build: func(f *fleet) {
			f.set("SET", "mail_retry", "x")
			f.set("SET", "mail_ticks", "x")
			f.work("w-1", worker{dead: true, claims: 1, queues: []string{"other"}})
		},
		want: []string{
			"error wrong type mail: it cannot be read: ", "error dead worker other: a worker has died",
		},
	},
}

// TestBrokenFleets looks at fleets from all sides: all find the same.
func TestBrokenFleets(t *testing.T) {
	t.Parallel()
	for _, test := range brokenFleets {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Shared(t)
			if test.redis != nil {
				server = redistest.Start(t, test.redis...)
			}
			f := newFleet(t, server)
			test.build(f)
			d, err := f.ins.Diagnose(t.Context())
			f.Must(err)
			var got []string
			for _, p := range d.Problems {
				if p.Kind == inspect.ProblemSetting && test.redis == nil {
					continue
				}
				since := ""
				if !p.Since.IsZero() {
					since = " since"
				}
				got = append(got, fmt.Sprintf("%s %s %s%s: %s", p.Severity, p.Kind, p.Queue, since, p.Text))
				if p.Advice == "" || strings.HasSuffix(p.Text, ".") || inspect.Printable(p.Text) != p.Text {
					t.Errorf("%+v", p)
				}
			}
			if !slices.EqualFunc(got, test.want, strings.HasPrefix) {
				t.Errorf("found\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			f.allSay(&d)
		})
	}
}

// allSay fails the test unless the command, the API, the page and the screen say all of a diagnosis.
func (f *fleet) allSay(d *inspect.Diagnosis) {
	f.T.Helper()
	want := document.DiagnosisOf(d).Problems
	code := 0
	for i := range want {
		if want[i].Level == string(inspect.SeverityError) {
			code = 1
		}
	}
	run := func(code int, args ...string) string {
		f.T.Helper()
		var out, errs bytes.Buffer
		env := map[string]string{"DELAYED_URL": f.Server.URL(), "DELAYED_PREFIX": f.prefix}
		found := cli.Run(f.T.Context(), args, &cli.Streams{
			In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(name string) string { return env[name] },
			Columns: func() int { return 0 }, Now: time.Now,
		})
		if found != code || errs.Len() > 0 {
			f.T.Errorf("delayed %s: code %d, expected %d: %s", strings.Join(args, " "), found, code, errs.String())
		}
		return out.String()
	}
	h, err := web.New(f.rdb, web.Config{Authorize: func(*http.Request) (web.User, error) {
		return web.User{Name: "ann", Role: web.Viewer}, nil
	}})
	f.Must(err)
	defer h.Close()
	get := func(path string) string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		return w.Body.String()
	}
	for name, text := range map[string]string{
		"doctor --json": run(code, "doctor", "--json"), "the API": get("/api/v1/diagnosis"),
	} {
		var v document.Diagnosis
		f.Must(json.Unmarshal([]byte(text), &v))
		if !reflect.DeepEqual(v.Problems, want) || v.Queues != d.Queues || v.Workers != d.Workers {
			f.T.Errorf("%s says\n%s\nexpected\n%+v", name, text, want)
		}
	}
	screen, err := top.ProblemsScreen(f.T.Context(), f.ins)
	f.Must(err)
	page := regexp.MustCompile(`</?(a|li|span|small|time)[^>]*>`).ReplaceAllString(get("/?all=1"), "")
	for name, text := range map[string]string{
		"doctor": run(code, "doctor"), "the page": html.UnescapeString(page), "top": screen,
	} {
		for _, p := range want {
			if !strings.Contains(text, p.Text) || !strings.Contains(text, p.Advice) {
				f.T.Errorf("%s does not say %q, %q:\n%s", name, p.Text, p.Advice, text)
			}
		}
	}
	for _, p := range want {
		if words := strings.Fields(strings.ReplaceAll(p.Command, "'", "")); len(words) > 0 {
			run(0, words[1:]...)
		}
	}
}

// TestDiagnosisOfManyQueues reads many queues in each call, and samples of a few.
func TestDiagnosisOfManyQueues(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	const queues = 2000
	for i := range queues {
		name := fmt.Sprintf("q-%04d", i)
		f.set("HSET", "delayed_queues", name, 0)
		f.set("ZADD", name+"_parked", f.now.Add(time.Hour).UnixMilli(), "x")
	}
	before := redistest.CommandStatsOn(t, f.Conn)
	d, err := f.ins.Diagnose(t.Context())
	f.Must(err)
	stats := redistest.CommandStatsOn(t, f.Conn).Since(before)
	if n := stats["evalsha"] + stats["eval"]; n > 250 || len(d.Problems) < queues {
		t.Errorf("%d scripts, %d problems: %v", n, len(d.Problems), stats)
	}
}
