package delayed_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/fakeredis"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

// names returns the settings that an error is about.
func (e errorsOfSettings) names() string {
	var names []string
	for _, err := range e {
		var s *delayed.SettingError
		if errors.As(err, &s) {
			names = append(names, s.Name)
		} else {
			names = append(names, err.Error())
		}
	}
	return strings.Join(names, " ")
}

type errorsOfSettings []error

func settingsOf(err error) string {
	if err == nil {
		return ""
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return errorsOfSettings(joined.Unwrap()).names()
	}
	return errorsOfSettings{err}.names()
}

// TestCheck checks servers with settings of all kinds.
func TestCheck(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t, "--appendonly", "yes")
	host, port, _ := strings.Cut(master.Addr(), ":")
	for _, c := range []struct {
		name    string
		args    []string
		do      [][]any
		user    string // to connect as
		allow   []string
		want    string // names of settings
		text    []string
		warning string // "": none
	}{
		{name: "sound", args: []string{"--appendonly", "yes"}},
		{name: "no append-only file", warning: "writes no append-only file"},
		{
			name: "eviction", args: []string{"--appendonly", "yes", "--maxmemory-policy", "allkeys-lru"},
			want: "eviction",
			text: []string{"maxmemory-policy allkeys-lru: expected noeviction", `allow "eviction" by name`},
		},
		{
			name: "volatile eviction", args: []string{"--appendonly", "yes", "--maxmemory-policy", "volatile-ttl"},
			want: "eviction",
		},
		{
			name: "eviction is allowed", args: []string{"--appendonly", "yes", "--maxmemory-policy", "allkeys-lru"},
			allow:   []string{"eviction"},
			warning: "maxmemory-policy allkeys-lru",
		},
		{
			name: "replica", args: []string{"--appendonly", "yes", "--replicaof", host, port}, want: "replica",
			text: []string{"is a replica"},
		},
		{
			name: "replica that evicts", args: []string{
				"--appendonly", "yes", "--maxmemory-policy", "allkeys-lru",
				"--replicaof", host, port,
			},
			allow: []string{"replica"}, want: "eviction", warning: "is a replica",
		},
		{
			name: "no scripts", args: []string{
				"--appendonly", "yes", "--rename-command", "EVAL", "",
				"--rename-command", "EVALSHA", "",
			}, want: "scripts",
			text: []string{"runs no Lua scripts", "ERR unknown command"},
		},
		{
			name: "scripts are forbidden", args: []string{"--appendonly", "yes"}, user: "u", want: "scripts",
			text: []string{"NOPERM"},
			do:   [][]any{{"ACL", "SETUSER", "u", "on", ">p", "~*", "+@all", "-@scripting"}},
		},
		{
			name: "INFO is forbidden", args: []string{"--appendonly", "yes"}, user: "u",
			warning: "does not answer INFO (NOPERM",
			do:      [][]any{{"ACL", "SETUSER", "u", "on", ">p", "~*", "+@all", "-info"}},
		},
		{
			name: "CONFIG is forbidden", args: []string{"--appendonly", "yes"}, user: "u",
			do: [][]any{{"ACL", "SETUSER", "u", "on", ">p", "~*", "+@all", "-config"}},
		},
		{
			name: "all at once", args: []string{"--maxmemory-policy", "allkeys-random", "--rename-command", "EVAL", ""},
			want: "eviction scripts", warning: "append-only file",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := redistest.Start(t, c.args...)
			for _, do := range c.do {
				server.Do(t, do[0].(string), do[1:]...) //nolint:errcheck // of the table
			}
			url := server.URL()
			if c.user != "" {
				url = strings.Replace(url, "redis://", "redis://"+c.user+":p@", 1)
			}
			rdb, err := delayed.Dial(url)
			if err != nil {
				t.Fatal(err)
			}
			defer rdb.Close()
			warnings, err := rdb.Check(t.Context(), c.allow...)
			if got := settingsOf(err); got != c.want {
				t.Errorf("found %q, expected %q", got, c.want)
			}
			for _, want := range append(c.text, "Redis at "+server.Addr()) {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("found %q, expected %q", err, want)
				}
			}
			if all := strings.Join(warnings, "\n"); (all == "") != (c.warning == "") ||
				!strings.Contains(all, c.warning) {
				t.Errorf("found the warnings %q, expected %q", warnings, c.warning)
			}
		})
	}
}

// TestCheckOfAServerThatIsNotReady: a temporary condition is an error of the connection, not of a setting.
func TestCheckOfAServerThatIsNotReady(t *testing.T) {
	for _, reply := range []string{
		"-LOADING Redis is loading the dataset in memory\r\n", "-BUSY a script runs\r\n",
		"",
	} {
		server, err := fakeredis.Start(func([]string) string { return reply })
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		rdb, err := delayed.Dial("redis://" + server.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer rdb.Close()
		var s *delayed.SettingError
		if warnings, err := rdb.Check(t.Context()); err == nil || errors.As(err, &s) || len(warnings) > 0 {
			t.Errorf("%q: found %q, %v", reply, warnings, err)
		}
	}
}

// TestWorkerRefusesSettings: a worker does not start on a server that loses tasks.
func TestWorkerRefusesSettings(t *testing.T) {
	b := newBenchOn(t, redistest.Start(t, "--maxmemory-policy", "allkeys-lru"))
	ran := make(chan struct{}, 1)
	f := b.fn("f", func() { ran <- struct{}{} })
	b.delay(f)
	cfg := b.config()
	cfg.StopWhenEmpty = true
	w, err := delayed.NewWorker(b.rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register(f); err != nil {
		t.Fatal(err)
	}
	var unfit *delayed.SettingError
	if err := w.Run(t.Context()); !errors.As(err, &unfit) || unfit.Name != "eviction" {
		t.Fatalf("Run: %v", err)
	}
	if s := w.Status(); s.State != state.Stopped || s.Connected {
		t.Errorf("found %+v", s)
	}
	if len(ran) > 0 {
		t.Error("a task has run")
	}
	cfg.StopWhenEmpty, cfg.Allow = false, []string{"eviction"}
	b.work(cfg, f)
	await(b, "the task", ran)
	for _, want := range []string{"maxmemory-policy allkeys-lru", "no append-only file"} {
		if !strings.Contains(b.log.String(), want) {
			t.Errorf("expected %q in the log:\n%s", want, b.log)
		}
	}
}

// TestWorkerRefusesSettingsOfARedisThatComesLate: Redis is unreachable when the worker starts.
func TestWorkerRefusesSettingsOfARedisThatComesLate(t *testing.T) {
	server := redistest.Start(t, "--maxmemory-policy", "allkeys-lru")
	server.Stop(t)
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	log := new(redistest.Log)
	w, err := delayed.NewWorker(rdb,
		delayed.WorkerConfig{Queues: delayed.Strict{redistest.Name(t)}, Logger: log.Logger()})
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{})
	if err := w.Listen(func(e delayed.Event) {
		if e.Kind == event.WorkerStarted {
			close(started)
		}
	}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Run(t.Context()) }()
	select {
	case <-started:
	case err := <-ended:
		t.Fatalf("Run: %v", err)
	}
	server.Restart(t)
	select {
	case err = <-ended:
	case <-time.After(patience):
		t.Fatalf("the worker runs on\n%s", log)
	}
	var unfit *delayed.SettingError
	if !errors.As(err, &unfit) || unfit.Name != "eviction" || w.Status().StopReason != "settings" {
		t.Errorf("Run: %v, reason %q", err, w.Status().StopReason)
	}
}

// TestStartIsTold checks the log of a worker's start.
func TestStartIsTold(t *testing.T) {
	b := newBench(t)
	known := redistest.Name(t)
	b.delayWith(delayed.NewQueue(known, b.rdb), b.fn("other", func() {}))
	cfg := b.config()
	cfg.Queues = delayed.Weighted{b.Name: 3, known: 1}
	w := b.work(cfg, b.fn("f", func() {}))
	b.Until("the look for queues that nobody uses",
		func() bool { return strings.Contains(b.log.String(), "knows of no task of this queue") })
	w.mustStop()
	text := b.log.String()
	for _, want := range []string{
		"worker started", "redis=\"" + b.Server.Addr() + "\"", fmt.Sprintf("%s=3", b.Name), "(weighted)",
		"concurrency=4", ".f]", "version=",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("expected %q in the log:\n%s", want, text)
		}
	}
	if strings.Contains(text, "and the key prefix?\" queue="+known) {
		t.Errorf("queue %s has a task:\n%s", known, text)
	}
	if strings.Contains(text, "no functions are registered") {
		t.Errorf("a function is registered:\n%s", text)
	}
	empty := newBench(t)
	empty.work(empty.config()).mustStop()
	if text := empty.log.String(); !strings.Contains(text, "no functions are registered") ||
		!strings.Contains(text, "(strict)") {
		t.Errorf("expected a warning:\n%s", text)
	}
}
