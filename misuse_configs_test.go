package delayed_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

func misusedConfigs(rdb *delayed.Redis) (all []misuse) {
	strict := delayed.Strict{"q"}
	for name, c := range map[string]struct {
		cfg  delayed.WorkerConfig
		want string
	}{
		"no Queues":      {delayed.WorkerConfig{}, "Queues is missing"},
		"nil Strict":     {delayed.WorkerConfig{Queues: delayed.Strict(nil)}, "Queues is missing"},
		"nil *Strict":    {delayed.WorkerConfig{Queues: (*delayed.Strict)(nil)}, "Queues is missing"},
		"empty Strict":   {delayed.WorkerConfig{Queues: delayed.Strict{}}, "no queues"},
		"nil Weighted":   {delayed.WorkerConfig{Queues: delayed.Weighted(nil)}, "Queues is missing"},
		"empty Weighted": {delayed.WorkerConfig{Queues: delayed.Weighted{}}, "no queues"},
		"an empty name":  {delayed.WorkerConfig{Queues: delayed.Strict{""}}, "name is empty"},
		"a queue twice":  {delayed.WorkerConfig{Queues: delayed.Strict{"q", "q"}}, "named twice"},
		"weight 0":       {delayed.WorkerConfig{Queues: delayed.Weighted{"q": 0}}, "weight 0"},
		"weight -1":      {delayed.WorkerConfig{Queues: delayed.Weighted{"q": -1}}, "weight -1"},
		"weight 1001":    {delayed.WorkerConfig{Queues: delayed.Weighted{"q": 1001}}, "weight 1001"},
		"Concurrency -1": {delayed.WorkerConfig{Queues: strict, Concurrency: -1}, "Concurrency is -1"},
		"Concurrency 1e6": {
			delayed.WorkerConfig{Queues: strict, Concurrency: 1_000_000},
			"Concurrency is 1000000",
		},
		"Prefetch 1e6":     {delayed.WorkerConfig{Queues: strict, Prefetch: 1_000_000}, "Prefetch is 1000000"},
		"HeartbeatLife 15": {delayed.WorkerConfig{Queues: strict, HeartbeatLife: 15}, "HeartbeatLife is 15ns"},
		"HeartbeatLife -1s": {
			delayed.WorkerConfig{Queues: strict, HeartbeatLife: -time.Second},
			"HeartbeatLife is -1s",
		},
		"SweepInterval 8": {delayed.WorkerConfig{Queues: strict, SweepInterval: 8}, "SweepInterval is 8ns"},
		"Grace 25": {
			delayed.WorkerConfig{Queues: strict, Grace: 25},
			"Grace is 25ns: expected at least 1ms",
		},
		"CancelGrace 3": {
			delayed.WorkerConfig{Queues: strict, CancelGrace: 3},
			"CancelGrace is 3ns: expected at least 1ms",
		},
		"Timeout 30": {
			delayed.WorkerConfig{Queues: strict, Timeout: 30},
			"Timeout is 30ns: expected at least 1ms",
		},
		"Timeout -1s": {delayed.WorkerConfig{Queues: strict, Timeout: -time.Second}, "Timeout is -1s"},
		"StuckAfter 30": {
			delayed.WorkerConfig{Queues: strict, StuckAfter: 30},
			"StuckAfter is 30ns: expected at least 1ms",
		},
		"MaxStuck 1e6": {delayed.WorkerConfig{Queues: strict, MaxStuck: 1_000_000}, "MaxStuck is 1000000"},
		"MaxTasks -1":  {delayed.WorkerConfig{Queues: strict, MaxTasks: -1}, "MaxTasks is -1"},
		"MaxTime 3600": {
			delayed.WorkerConfig{Queues: strict, MaxTime: 3600},
			"MaxTime is 3.6µs: expected at least 1ms",
		},
		"MaxTime -1s": {delayed.WorkerConfig{Queues: strict, MaxTime: -time.Second}, "MaxTime is -1s"},
		"MaxMemory 512": {
			delayed.WorkerConfig{Queues: strict, MaxMemory: 512},
			"MaxMemory is 512: expected a number of bytes of at least 1048576",
		},
		"MaxMemory -1": {delayed.WorkerConfig{Queues: strict, MaxMemory: -1}, "MaxMemory is -1"},
		"StopWhenEmptyFor 10": {
			delayed.WorkerConfig{Queues: strict, StopWhenEmptyFor: 10},
			"StopWhenEmptyFor is 10ns: expected at least 1ms",
		},
		"Rest 10": {
			delayed.WorkerConfig{Queues: strict, Rest: 10},
			"Rest is 10ns: expected at least 1ms",
		},
		"Rest -1s":      {delayed.WorkerConfig{Queues: strict, Rest: -time.Second}, "Rest is -1s"},
		"ArchiveMax -1": {delayed.WorkerConfig{Queues: strict, ArchiveMax: -1}, "ArchiveMax is -1"},
		"ArchiveFor 90": {delayed.WorkerConfig{Queues: strict, ArchiveFor: 90}, "ArchiveFor is 90ns"},
		"Allow of anything": {
			delayed.WorkerConfig{Queues: strict, Allow: []string{"everything"}},
			`unknown name "everything"`,
		},
		"Legacy behind a prefix": {delayed.WorkerConfig{Queues: strict, Legacy: true}, "key prefix"},
		"PythonQueue of spaces":  {delayed.WorkerConfig{Queues: strict, PythonQueue: "a b"}, "without spaces"},
		"nil *logrus.Logger": {
			delayed.WorkerConfig{Queues: strict, Logger: (*logrus.Logger)(nil)},
			"Logger is a nil or zero *logrus.Logger",
		},
		"nil *logrus.Entry": {
			delayed.WorkerConfig{Queues: strict, Logger: (*logrus.Entry)(nil)},
			"Logger is a nil or zero *logrus.Entry",
		},
		"zero *logrus.Entry": {
			delayed.WorkerConfig{Queues: strict, Logger: &logrus.Entry{}},
			"Logger is a nil or zero *logrus.Entry",
		},
		"Periodic without a name": {
			delayed.WorkerConfig{Queues: strict, Schedulers: []delayed.SchedulerConfig{{}}},
			"name is empty",
		},
	} {
		all = append(all, misuse{"WorkerConfig with " + name, func() error {
			r := rdb
			if c.cfg.Legacy {
				r = rdb.WithPrefix("p")
			}
			_, err := delayed.NewWorker(r, c.cfg)
			return err
		}, c.want})
	}
	for name, c := range map[string]struct {
		cfg  delayed.SweeperConfig
		want string
	}{
		"no Queues":        {delayed.SweeperConfig{}, "no queues"},
		"an empty name":    {delayed.SweeperConfig{Queues: []string{""}}, "name is empty"},
		"Interval 8":       {delayed.SweeperConfig{Queues: strict, Interval: 8}, "Interval is 8ns"},
		"HeartbeatLife 15": {delayed.SweeperConfig{Queues: strict, HeartbeatLife: 15}, "HeartbeatLife is 15ns"},
		"ArchiveMax -1":    {delayed.SweeperConfig{Queues: strict, ArchiveMax: -1}, "ArchiveMax is -1"},
		"ArchiveFor 1":     {delayed.SweeperConfig{Queues: strict, ArchiveFor: 1}, "ArchiveFor is 1ns"},
		"a nil logger": {
			delayed.SweeperConfig{Queues: strict, Logger: (*logrus.Logger)(nil)},
			"Logger is a nil or zero",
		},
	} {
		all = append(all, misuse{
			"SweeperConfig with " + name,
			func() error { _, err := delayed.NewSweeper(rdb, c.cfg); return err }, c.want,
		})
	}
	for name, c := range map[string]struct {
		cfg  delayed.SchedulerConfig
		want string
	}{
		"no Queue": {delayed.SchedulerConfig{}, "name is empty"},
		"no Owner": {
			delayed.SchedulerConfig{
				Queue:   "q",
				Entries: []delayed.Entry{{Name: "e", Spec: "@daily", Task: delayed.Call(wrongOne, 1)}},
			},
			"Owner is missing",
		},
		"a long Owner": {
			delayed.SchedulerConfig{Queue: "q", Owner: strings.Repeat("o", 129)},
			"Owner of 129 bytes",
		},
		"a Version of no Owner": {delayed.SchedulerConfig{Queue: "q", Version: 1}, "Version is 1"},
		"Version -1":            {delayed.SchedulerConfig{Queue: "q", Owner: "o", Version: -1}, "Version is -1"},
		"a nil logger": {
			delayed.SchedulerConfig{Queue: "q", Logger: (*logrus.Entry)(nil)},
			"Logger is a nil or zero",
		},
		"an entry twice": {delayed.SchedulerConfig{Queue: "q", Owner: "o", Entries: []delayed.Entry{
			{Name: "e", Spec: "@daily", Task: delayed.Call(wrongOne, 1)},
			{Name: "e", Spec: "@daily", Task: delayed.Call(wrongOne, 1)},
		}}, "declared twice"},
	} {
		all = append(all, misuse{
			"SchedulerConfig with " + name,
			func() error { _, err := delayed.NewScheduler(rdb, c.cfg); return err }, c.want,
		})
	}
	for name, c := range map[string]struct {
		cfg  delayed.QueueConfig
		want string
	}{
		"Legacy behind a prefix": {delayed.QueueConfig{Name: "q", Legacy: true}, "key prefix"},
	} {
		all = append(all, misuse{"QueueConfig with " + name, func() error {
			_, err := delayed.OpenQueue(rdb.WithPrefix("p"), c.cfg)
			return err
		}, c.want})
	}
	return all
}

func misusedEntries(t *testing.T, rdb *delayed.Redis) (all []misuse) {
	t.Helper()
	q := delayed.NewQueue(redistest.Name(t), rdb)
	good := delayed.Entry{Name: "e", Spec: "@daily", Task: delayed.Call(wrongOne, 1)}
	for name, do := range map[string]func(context.Context, *delayed.PeriodicControl) error{
		"Set":    func(ctx context.Context, p *delayed.PeriodicControl) error { return p.Set(ctx, good) },
		"Remove": func(ctx context.Context, p *delayed.PeriodicControl) error { return p.Remove(ctx, "e") },
		"Pause":  func(ctx context.Context, p *delayed.PeriodicControl) error { return p.Pause(ctx, "e") },
		"Resume": func(ctx context.Context, p *delayed.PeriodicControl) error { return p.Resume(ctx, "e") },
		"RunNow": func(ctx context.Context, p *delayed.PeriodicControl) error {
			_, err := p.RunNow(ctx, "e")
			return err
		},
		"List": func(ctx context.Context, p *delayed.PeriodicControl) error { _, err := p.List(ctx); return err },
		"History": func(ctx context.Context, p *delayed.PeriodicControl) error {
			_, err := p.History(ctx, "e")
			return err
		},
	} {
		all = append(all,
			misuse{
				name + " of a nil Periodic", func() error { return do(t.Context(), nil) },
				"the *PeriodicControl is nil or zero",
			},
			misuse{
				name + " of a zero Periodic", func() error { return do(t.Context(), &delayed.PeriodicControl{}) },
				"the *PeriodicControl is nil or zero",
			},
			misuse{
				name + " of entries without a context", func() error { return do(nil, q.Periodic()) },
				"the context is nil",
			},
		)
	}
	for name, c := range map[string]struct {
		change func(*delayed.Entry)
		want   string
	}{
		"no name":            {func(e *delayed.Entry) { e.Name = "" }, "without a name"},
		"a name with @":      {func(e *delayed.Entry) { e.Name = "@e" }, "does not begin with @"},
		"no spec":            {func(e *delayed.Entry) { e.Spec = "" }, "spec"},
		"a spec of nonsense": {func(e *delayed.Entry) { e.Spec = "often" }, "spec"},
		"a short interval":   {func(e *delayed.Entry) { e.Spec = "@every 1ms" }, "at least 1s"},
		"an unknown zone":    {func(e *delayed.Entry) { e.Zone = "Berlin" }, "Berlin"},
		"no task":            {func(e *delayed.Entry) { e.Name, e.Task = "new", nil }, "has no task"},
		"a zero task":        {func(e *delayed.Entry) { e.Task = &delayed.Task{} }, "the *Task is nil or zero"},
		"a wrong task": {
			func(e *delayed.Entry) { e.Task = delayed.Call(wrongOne, delayed.In(time.Hour)) },
			"found the option In",
		},
		"a nil option": {func(e *delayed.Entry) { e.Options = []delayed.Option{nil} }, "option 1 is nil"},
		"In": {
			func(e *delayed.Entry) { e.Options = []delayed.Option{delayed.In(time.Hour)} },
			"In and At",
		},
		"Jitter of 30":    {func(e *delayed.Entry) { e.Jitter = 30 }, "Jitter is 30ns: expected 1ms to 1h0m0s"},
		"Jitter of a day": {func(e *delayed.Entry) { e.Jitter = 24 * time.Hour }, "Jitter is 24h0m0s"},
		"Overlap of 9":    {func(e *delayed.Entry) { e.Overlap = 9 }, "Overlap is 9"},
	} {
		e := good
		c.change(&e)
		all = append(all, misuse{"Set with " + name, func() error { return q.Periodic().Set(t.Context(), e) }, c.want})
	}
	return append(all,
		misuse{
			"Set through With(In)",
			func() error { return q.With(delayed.In(time.Hour)).Periodic().Set(t.Context(), good) }, "In and At",
		},
		misuse{
			"Set through a wrong With",
			func() error { return q.With(delayed.TTL(0)).Periodic().Set(t.Context(), good) }, "option TTL(0s)",
		},
		misuse{"Set of options without a task", func() error {
			return q.With(delayed.Header("k", "v")).Periodic().Set(t.Context(),
				delayed.Entry{Name: "e", Spec: "@daily"})
		}, "options but no task"},
		misuse{
			"Pause of no entry", func() error { return q.Periodic().Pause(t.Context(), "nothing") },
			"no such periodic entry",
		},
		misuse{
			"Remove of no entry", func() error { return q.Periodic().Remove(t.Context(), "") },
			"no such periodic entry",
		},
		misuse{
			"RunNow of no entry", func() error { _, err := q.Periodic().RunNow(t.Context(), "nothing"); return err },
			"no such periodic entry",
		},
	)
}

func misusedURLs() (all []misuse) {
	for url, want := range map[string]string{
		"":                                 "malformed Redis URL",
		"localhost":                        "malformed Redis URL",
		"localhost:6379":                   "malformed Redis URL",
		"http://localhost":                 "unknown scheme",
		"redis://":                         "server 1",
		"redis://localhost:port":           "server 1",
		"redis://localhost/x":              "expected the number of a database",
		"redis://localhost/-1":             "expected the number of a database",
		"redis://localhost?db=1":           `parameter "db"`,
		"redis://localhost?timeout=1s":     `parameter "timeout"`,
		"redis://a,b":                      "rediscluster.Dial",
		"redis://a?master=m":               "redissentinel.Dial",
		"redis://user:hunter2/x@localhost": "malformed Redis URL",
		"unix://":                          "malformed Redis URL",
		"unix:///s?db=x":                   "expected the number of a database",
		"unix:///s?db=-1":                  "expected the number of a database",
		"unix:///s?database=1":             `parameter "database" of the Redis URL: expected one of db, password, user`,
		"unix:///s?username=me":            `parameter "username"`,
		"unix:///s?pass=hunter2":           `parameter "pass"`,
		"unix:///s?%zz":                    "malformed Redis URL",
		"unix:///s?user=me":                "a user without a password",
		"unix:///s?db=1&db=2":              "expected it once, found it 2 times",
		"redis://me@a":                     "a user without a password",
	} {
		all = append(all, misuse{"Dial(" + url + ")", func() error { _, err := delayed.Dial(url); return err }, want})
	}
	return all
}

func misusedNames(rdb *delayed.Redis) (all []misuse) {
	for name, want := range map[string]string{
		"": "is empty", " ": "without spaces", "a b": "without spaces", "a\nb": "printable", "a\x00": "printable",
		"\xff":    "printable",
		"a\u200b": "printable", strings.Repeat("q", 129): "at most 128", "mail_noti": "a key of queue",
		"mail_workers": "a key of queue",
		"_retry":       "a key of queue", "mail_processing:x": "keys of another queue",
		"x_group:": "keys of another queue",
	} {
		all = append(all,
			misuse{
				fmt.Sprintf("OpenQueue(%q)", name),
				func() error { _, err := delayed.OpenQueue(rdb, delayed.QueueConfig{Name: name}); return err }, want,
			},
			misuse{fmt.Sprintf("NewQueue(%q)", name), none(func() { delayed.NewQueue(name, rdb) }), want},
		)
	}
	return all
}
