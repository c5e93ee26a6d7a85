package delayed_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/fakeredis"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/rediscluster"
	"github.com/godelayed/delayed/state"
)

func TestDialUnderstandsURLs(t *testing.T) {
	for url, want := range map[string]string{
		"redis://localhost":                    "tcp localhost:6379",
		"redis://:secret@h:1/3":                "tcp h:1",
		"rediss://u:secret@[::1]:7":            "tcp [::1]:7",
		"unix:///run/redis.sock?db=2":          "unix /run/redis.sock",
		"redis://a:1,b:2":                      "error rediscluster",
		"redis://a:1?master=m":                 "error redissentinel",
		"http://h":                             "error scheme",
		"redis://h/x":                          "error database",
		"redis://h/-1":                         "error database",
		"redis://u:secret@h:port":              "error port",
		"://":                                  "error scheme",
		"redis+sentinel://u:secret@h/0":        "error scheme",
		"redis://user:secret@a,b,c:1/0":        "error rediscluster",
		"redis://user:sec%ret@h":               "error malformed",
		"redis://127.0.0.1:6379/15":            "tcp 127.0.0.1:6379",
		"redis://[fe80::1]":                    "tcp [fe80::1]:6379",
		"unix:///var/run/redis/redis.sock":     "unix /var/run/redis/redis.sock",
		"unix:///var/run/redis/redis.sock?db=": "unix /var/run/redis/redis.sock",
		"unix:///r.sock?db=x":                  "error database",
		"unix://":                              "error malformed",
		"redis://h?x=1":                        "error parameter",
	} {
		network, addr, _, _, err := redisstore.ParseURL(url)
		got := fmt.Sprint(network, " ", addr)
		if err != nil {
			got = "error " + err.Error()
		}
		if !strings.HasPrefix(got, strings.SplitAfter(want, " ")[0]) ||
			!strings.Contains(got, strings.SplitN(want, " ", 2)[1]) {
			t.Errorf("%s: %s, expected %s", url, got, want)
		}
		if strings.Contains(got, "secret") {
			t.Errorf("%s: the error shows the password: %s", url, got)
		}
	}
}

func TestHandle(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	if err := b.rdb.Ping(ctx); err != nil {
		t.Error(err)
	}
	rdb, _ := delayed.Dial(b.Server.URL())
	if err := rdb.Close(); err != nil {
		t.Error(err)
	}
	if _, err := delayed.NewQueue(b.Name, rdb).Delay(plainForTest, 1); !errors.Is(err, delayed.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := rdb.Ping(ctx); !errors.Is(err, delayed.ErrClosed) {
		t.Errorf("Ping after Close: %v", err)
	}
	rdb, _ = delayed.Dial("redis://127.0.0.1:1")
	defer rdb.Close()
	if err := rdb.Ping(ctx); err == nil {
		t.Error("Ping of nobody")
	}
	if _, err := delayed.NewQueue(b.Name, rdb).Delay(plainForTest, 1); err == nil ||
		errors.Is(err, delayed.ErrUnknown) {
		t.Errorf("nobody listens: %v: nothing was sent, so nothing is unknown", err)
	}
}

func TestProducersShareABoundedNumberOfConnections(t *testing.T) {
	b := newBench(t)
	src := &countingSource{Source: b.src, hold: make(chan struct{})}
	rdb := delayed.FromSource(src)
	queues := make([]*delayed.Queue, 3*redisstore.CallerConns) // the calls of one queue are shared
	var group sync.WaitGroup
	for i := range queues {
		queues[i] = delayed.NewQueue(b.Name+"."+strconv.Itoa(i), rdb)
		for n := range 3 { // alone, with others, and in a call for many
			group.Go(func() {
				tasks := []*delayed.Task{delayed.Call(plainForTest, n), delayed.Call(plainForTest, n)}
				if n < 2 {
					tasks = tasks[:1]
					if _, err := queues[i].Enqueue(t.Context(), tasks[0]); err != nil {
						t.Error(err)
					}
				} else if _, err := queues[i].DelayMany(t.Context(), tasks...); err != nil {
					t.Error(err)
				}
			})
		}
	}
	b.Until("all places are taken", func() bool { return src.now.Load() == redisstore.CallerConns })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.q.DelayContext(ctx, plainForTest, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	close(src.hold)
	group.Wait()
	if n := src.most.Load(); n > redisstore.CallerConns {
		t.Errorf("%d connections at once", n)
	}
	for _, q := range queues {
		if n, err := q.Len(t.Context()); n != 4 || err != nil {
			t.Errorf("%s has %d tasks, %v", q.Name(), n, err)
		}
	}
}

// TestPoolUsedUp takes all connections of a pool of the program: calls say that the pool is why they fail, whether the
// pool waits or not.
func TestPoolUsedUp(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	for _, wait := range []bool{false, true} {
		pool := server.Pool(t)
		pool.MaxActive, pool.Wait = 2, wait
		rdb := delayed.FromPool(pool)
		q := delayed.NewQueue(redistest.Name(t), rdb)
		taken := []redis.Conn{pool.Get(), pool.Get()}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := q.Len(ctx)
		cancel()
		const want = "the pool has all its 2 connections in use: expected a free one: raise its MaxActive"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Wait %t: %v, expected %q", wait, err, want)
		}
		if cause := context.DeadlineExceeded; wait && !errors.Is(err, cause) {
			t.Errorf("%v, expected that it wraps %v", err, cause)
		}
		taken[0].Close()
		if _, err := q.Len(t.Context()); err != nil {
			t.Errorf("Wait %t: a connection is free: %v", wait, err)
		}
		// A context that ends for another reason says nothing about the pool.
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := q.Len(canceled); err == nil || strings.Contains(err.Error(), "the pool") {
			t.Errorf("Wait %t: a canceled call: %v", wait, err)
		}
	}
}

func TestDialTLS(t *testing.T) {
	t.Parallel()
	certs := redistest.NewTLS(t)
	_, addr := certs.Start(t)
	for name, c := range map[string]struct {
		query    url.Values
		expected string // "": it works
	}{
		"all":         {certs.Query(), ""},
		"authority":   {certs.Query("ca"), "unknown authority"},
		"name":        {certs.Query("server_name"), "127.0.0.1"},
		"certificate": {certs.Query("cert", "key"), "certificate required"},
	} {
		rdb, err := delayed.Dial("rediss://" + addr + "?" + c.query.Encode())
		if err != nil {
			t.Fatal(err)
		}
		defer rdb.Close()
		err = rdb.Ping(t.Context())
		if err != nil && name == "certificate" && strings.Contains(err.Error(), "connection reset") {
			continue // the server has closed the connection before its alert was read
		}
		if (err == nil) != (c.expected == "") || err != nil && !strings.Contains(err.Error(), c.expected) {
			t.Errorf("%s: expected an error with %q, found %v", name, c.expected, err)
		}
	}
}

func TestParametersOfURL(t *testing.T) {
	for rawURL, expected := range map[string]string{
		"redis://a?ca=/ca.pem":               "expected scheme rediss",
		"rediss://a?ca=/none/ca.pem":         "/none/ca.pem",
		"rediss://a?ca=store_test.go":        "holds no certificate",
		"rediss://a?cert=/c.pem":             "expected both",
		"rediss://a?cert=/c.pem&key=/k.pem":  "cert and key",
		"redis://a?dial_timeout=2":           "dial_timeout",
		"redis://a?dial_timeout=1ns":         "dial_timeout",
		"redis://a?pool_size=0":              "pool_size",
		"redi://a":                           "expected redis or rediss, or unix as in unix:///path/redis.sock",
		"redis://a?pool_sise=1":              `"pool_sise"`,
		"redis://a?dial_timeout=2s":          "",
		"redis://a/3?pool_size=2":            "",
		"rediss://a?server_name=redis.local": "",
	} {
		rdb, err := delayed.Dial(rawURL)
		if err == nil {
			rdb.Close()
		}
		if (err == nil) != (expected == "") || err != nil &&
			(!strings.HasPrefix(err.Error(), "delayed: ") || !strings.Contains(err.Error(), expected)) {
			t.Errorf("%s: expected an error with %q, found %v", rawURL, expected, err)
		}
	}
	calls, _, _, err := redisstore.DialSources("redis://a?pool_size=2&dial_timeout=3s")
	if err != nil {
		t.Fatal(err)
	}
	if pool, ok := calls.(redisstore.PoolSource); !ok || pool.Pool.MaxActive != 2 {
		t.Errorf("expected a pool of 2 connections, found %+v", calls)
	}
}

// sizedSource is a source for one producer, such as the parameter pool_size of a URL makes.
type sizedSource struct {
	delayed.Source
	asked chan struct{}
	hold  chan struct{}
}

func (sizedSource) PoolSize() int { return 1 }

func (s sizedSource) Conn(ctx context.Context, key string) (redis.Conn, error) {
	s.asked <- struct{}{}
	select {
	case <-s.hold:
		return s.Source.Conn(ctx, key)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestSourceBoundsItsProducers(t *testing.T) {
	b := newBench(t)
	src := sizedSource{Source: b.src, asked: make(chan struct{}, 2), hold: make(chan struct{})}
	rdb := delayed.FromSource(src)
	first := make(chan error, 1)
	go func() {
		_, err := delayed.NewQueue(b.Name, rdb).DelayContext(t.Context(), plainForTest, 1)
		first <- err
	}()
	await(b, "a producer to take the place", src.asked)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := delayed.NewQueue(b.Name+".other", rdb).DelayMany(ctx, delayed.Call(plainForTest, 1),
		delayed.Call(plainForTest, 2))
	if err == nil || !strings.Contains(err.Error(), "waiting for a connection to Redis") {
		t.Errorf("a second producer: %v", err)
	}
	close(src.hold)
	if err := await(b, "the first producer to end", first); err != nil {
		t.Error(err)
	}
}

// TestServerOfAnotherKind connects handles of Dial to a node of a cluster and to a Sentinel, with the answers of Redis
// 7.0.
func TestServerOfAnotherKind(t *testing.T) {
	sentinel := func(args []string) string {
		if args[0] == "ROLE" {
			return fakeredis.Array(fakeredis.Bulk("sentinel"), fakeredis.Array())
		}
		return fmt.Sprintf("-ERR unknown command '%s', with args beginning with: '%s' \r\n", args[0],
			strings.Join(args[1:], "' '"))
	}
	for name, c := range map[string]struct {
		answer   func(args []string) string
		path     string
		expected string
	}{
		"moved": {func([]string) string { return "-MOVED 5 10.0.0.1:6379\r\n" }, "", "rediscluster.Dial"},
		"cross slot": {
			func([]string) string { return "-CROSSSLOT Keys in request don't hash to the same slot\r\n" },
			"", "rediscluster.Dial",
		},
		"cluster, database": {func(args []string) string {
			return "-ERR SELECT is not allowed in cluster mode\r\n"
		}, "/1", "rediscluster.Dial"},
		"sentinel":           {sentinel, "", "redissentinel.Dial"},
		"sentinel, database": {sentinel, "/1", "unknown command 'SELECT'"},
		"without scripts": {func(args []string) string {
			return "-ERR unknown command `" + args[0] + "`, with args beginning with: `" + strings.Join(args[1:],
				"`, `") + "`, \r\n"
		}, "", "6.2"},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := fakeredis.Start(c.answer)
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			rdb, err := delayed.Dial("redis://" + server.Addr() + c.path)
			if err != nil {
				t.Fatal(err)
			}
			defer rdb.Close()
			q := delayed.NewQueue("mail", rdb)
			_, enqueue := q.Enqueue(t.Context(), delayed.NewGoTask("example.com/app/mail.Welcome", "hunter2"))
			_, length := q.Len(t.Context())
			for _, err := range []error{enqueue, length} {
				var answer redis.Error
				if err == nil || !strings.Contains(err.Error(), c.expected) || !errors.As(err, &answer) ||
					errors.Is(err, delayed.ErrUnknown) {
					t.Errorf("expected an error with %q, found %v", c.expected, err)
				} else if text := err.Error(); strings.Contains(text, "hunter2") ||
					strings.Contains(text, "mail_noti") {
					t.Errorf("the error repeats the task: %s", text)
				}
			}
		})
	}
}

// TestServerWithoutLua: whatever needs scripts says so at once, and does not try again.
func TestServerWithoutLua(t *testing.T) {
	for name, refusal := range map[string]string{
		"Valkey without its module": "-ERR Could not find scripting engine 'lua'\r\n",
		"renamed command":           "-ERR unknown command 'EVAL', with args beginning with: 'hunter2' \r\n",
	} {
		t.Run(name, func(t *testing.T) {
			server, err := fakeredis.Start(func(args []string) string {
				switch args[0] {
				case "EVAL":
					return refusal
				case "EVALSHA":
					return "-NOSCRIPT No matching script.\r\n"
				case "INFO":
					return fakeredis.Bulk("redis_version:7.2.4\r\nrole:master\r\nmaxmemory_policy:noeviction\r\n" +
						"aof_enabled:1\r\n")
				case "SUBSCRIBE":
					return ""
				case "HGET":
					return "$-1\r\n"
				case "HKEYS":
					return fakeredis.Array()
				case "TIME":
					return fakeredis.Array(fakeredis.Bulk("1700000000"), fakeredis.Bulk("0"))
				}
				return "+OK\r\n"
			})
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			rdb, err := delayed.Dial("redis://" + server.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer rdb.Close()
			const want = "the server"
			q, err := delayed.OpenQueue("mail", rdb, delayed.QueueConfig{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = q.Enqueue(t.Context(), delayed.NewGoTask("example.com/app/mail.Welcome"))
			if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, delayed.ErrUnknown) {
				t.Errorf("Enqueue: expected an error with %q, found %v", want, err)
			}

			w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Strict{"mail"}})
			if err != nil {
				t.Fatal(err)
			}
			var unfit *delayed.SettingError
			if err := w.Run(t.Context()); !errors.As(err, &unfit) || unfit.Name != "scripts" {
				t.Errorf("Worker.Run: expected the setting scripts, found %v", err)
			}

			for _, owner := range []string{"", "app"} {
				s, err := delayed.NewScheduler(rdb, delayed.SchedulerConfig{Queue: "mail", Owner: owner})
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("Scheduler.Run, owner %q: expected an error with %q, found %v", owner, want, err)
				}
			}
		})
	}
}

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
	cfg.Limits.StopWhenEmpty = true
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
	cfg.Limits.StopWhenEmpty, cfg.Allow = false, []string{"eviction"}
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
	if err := w.OnEvent(func(e delayed.Event) {
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

// TestStartIsLogged checks the log of a worker's start.
func TestStartIsLogged(t *testing.T) {
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

// TestCheckOfACluster: Check looks at each master.
func TestCheckOfACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	rdb, err := rediscluster.Dial(cluster.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	warnings, err := rdb.Check(t.Context())
	if err != nil || len(warnings) != len(cluster.Nodes) {
		t.Errorf("found %v, warnings %q, expected one about each append-only file", err, warnings)
	}
	for _, node := range cluster.Nodes {
		node.Do(t, "CONFIG", "SET", "maxmemory-policy", "volatile-lru")
		var unfit *delayed.SettingError
		if _, err := rdb.Check(t.Context()); !errors.As(err, &unfit) || unfit.Name != "eviction" ||
			strings.Count(err.Error(), "maxmemory-policy") != 2 ||
			!strings.Contains(err.Error(), "Redis at "+node.Addr()) {
			t.Errorf("node %s: found %v", node.Addr(), err)
		}
		node.Do(t, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	}
}

// forbidden are the commands that managed servers rename or forbid, and others that nothing depends on.
var forbidden = []string{
	"info", "config", "client", "script", "debug", "wait", "keys", "type", "role", "subscribe", "sismember",
	"@dangerous", "@admin",
}

// TestForbiddenCommands forbids one command after the other. A worker runs tasks, and gives back those of a killed
// worker.
func TestForbiddenCommands(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, command := range forbidden {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			b := newBenchOn(t, server)
			b.Do("ACL", "SETUSER", b.Name, "on", ">secret", "allkeys", "allchannels", "+@all", "-"+command)
			u, err := url.Parse(server.URL())
			b.Must(err)
			u.User = url.UserPassword(b.Name, "secret")
			rdb, err := delayed.Dial(u.String())
			b.Must(err)
			t.Cleanup(func() { rdb.Close() })
			b.worksAndSweeps(rdb)
			if text := b.log.String(); command == "info" && !strings.Contains(text, "does not answer INFO") {
				t.Errorf("the log does not say at the start what is unknown: %s", text)
			}
		})
	}
}

// TestRenamedCommands is TestForbiddenCommands on a server that does not know the commands at all.
func TestRenamedCommands(t *testing.T) {
	t.Parallel()
	var args []string
	for _, command := range []string{"CONFIG", "CLIENT", "SCRIPT", "DEBUG", "WAIT", "KEYS"} {
		args = append(args, "--rename-command", command, "x"+command)
	}
	b := newBenchOn(t, redistest.Start(t, args...))
	rdb := delayed.FromSource(redistest.Intercept(b.src,
		func(cmd string, _ []any, send func() (any, error)) (any, error) {
			if cmd == "INFO" { // the tests' own start of a server needs it
				return nil, redis.Error("ERR unknown command 'INFO', with args beginning with: ")
			}
			return send()
		}))
	b.worksAndSweeps(rdb)
	b.worksAndSweeps(b.rdb)
}

// worksAndSweeps runs a worker until it has run a task and has given back the one of a killed worker.
func (b *bench) worksAndSweeps(rdb *delayed.Store) {
	b.T.Helper()
	ran := make(chan bool, 10)
	fn := b.fn("f", func() { ran <- true })
	b.delay(fn)
	_, err := b.store.Register(bg, "dead", 500*time.Millisecond, "v")
	b.Must(err)
	got, err := b.store.Claim(bg, redisstore.ClaimCall{Worker: "dead", Batch: 1, Most: 1})
	if err != nil || len(got.Messages) != 1 {
		b.T.Fatalf("claimed %d tasks: %v", len(got.Messages), err)
	}
	w := b.workWith(rdb, b.config(), fn)
	_, err = delayed.NewQueue(b.Name, rdb).Delay(fn)
	b.Must(err)
	await(b, "a task", ran)
	b.Until("the task of the dead worker is given back", func() bool { return b.Size("_processing:dead") == 0 })
	w.mustStop()
}

// emptySource is a source that returns neither connections nor errors.
type emptySource struct{ conn redis.Conn }

func (s *emptySource) Conn(context.Context, string) (redis.Conn, error) { return s.conn, nil }
func (*emptySource) Slot(string) int                                    { return 0 }
func (*emptySource) Close() error                                       { return nil }

// emptyConn is a connection whose nil pointer a program may return by mistake.
type emptyConn struct{ redis.Conn }

// misusedConnections returns uses of pools and sources whose connections are nil.
func misusedConnections(t *testing.T) (all []misuse) {
	t.Helper()
	for name, handle := range map[string]struct {
		open func() *delayed.Store
		want string
	}{
		"pool whose Dial returns nil": {func() *delayed.Store {
			dial := func() (redis.Conn, error) { return nil, nil } //nolint:nilnil // on purpose
			return delayed.FromPool(&redis.Pool{Dial: dial})
		}, "the pool's Dial has returned neither a connection nor an error"},
		"pool whose Dial returns a nil pointer": {func() *delayed.Store {
			return delayed.FromPool(&redis.Pool{Dial: func() (redis.Conn, error) { return (*emptyConn)(nil), nil }})
		}, "the pool's Dial has returned neither a connection nor an error"},
		"source that returns nil": {func() *delayed.Store {
			return delayed.FromSource(&emptySource{})
		}, "the Conn of a *delayed_test.emptySource has returned neither a connection nor an error"},
		"source that returns a nil pointer": {func() *delayed.Store {
			return delayed.FromSource(&emptySource{(*emptyConn)(nil)})
		}, "the Conn of a *delayed_test.emptySource has returned neither a connection nor an error"},
	} {
		rdb := handle.open()
		t.Cleanup(func() { rdb.Close() })
		q := delayed.NewQueue(redistest.Name(t), rdb)
		for call, do := range map[string]func() error{
			"Ping":  func() error { return rdb.Ping(t.Context()) },
			"Check": func() error { _, err := rdb.Check(t.Context()); return err },
			"Delay": func() error { _, err := q.Delay(wrongOne, 1); return err },
			"Len":   func() error { _, err := q.Len(t.Context()); return err },
			"State": func() error { _, err := q.Ref("x").State(t.Context()); return err },
		} {
			all = append(all, misuse{call + " with a " + name, do, handle.want})
		}
	}
	return all
}

// plainSource is a source that a program has written: a pool that knows nothing of fail-overs.
type plainSource struct{ pool *redis.Pool }

func (s plainSource) Conn(ctx context.Context, _ string) (redis.Conn, error) {
	return s.pool.GetContext(ctx)
}
func (s plainSource) Slot(string) int { return 0 }
func (s plainSource) Close() error    { return s.pool.Close() }

// handles are the ways in which a program may reach the server behind an address.
var handles = map[string]func(url string) (*delayed.Store, error){
	"Dial":       delayed.Dial,
	"FromPool":   func(url string) (*delayed.Store, error) { return delayed.FromPool(poolOf(url)), nil },
	"FromSource": func(url string) (*delayed.Store, error) { return delayed.FromSource(plainSource{poolOf(url)}), nil },
}

func poolOf(url string) *redis.Pool {
	return &redis.Pool{
		MaxIdle: 30,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialURLContext(ctx, url, redis.DialReadTimeout(20*time.Second))
		},
	}
}

// traffic is a program that uses delayed in every way, through one handle for each.
type traffic struct {
	b        *bench
	q        *delayed.Queue
	stop     context.CancelFunc
	wg       sync.WaitGroup
	next     atomic.Int64
	accepted sync.Map // the numbers of tasks that Redis has accepted
	ran      sync.Map // how often each has run
	refused  atomic.Int64
	worker   *started
	// What has gone well lately.
	enqueued, done, awaited, read, ticked atomic.Int64
}

// startTraffic starts producers, a worker, a scheduler, programs that wait for results, read, and listen to events.
func startTraffic(b *bench, dial func() *delayed.Store) *traffic {
	t := &traffic{b: b}
	work := delayed.Func(func(n int64) int64 {
		count, _ := t.ran.LoadOrStore(n, new(atomic.Int64))
		count.(*atomic.Int64).Add(1) //nolint:errcheck // it is one
		t.done.Add(1)
		return n
	}, delayed.Name("failover.work"))
	tick := delayed.Func(func() { t.ticked.Add(1) }, delayed.Name("failover.tick"))
	t.worker = b.workWith(dial(), b.config(), work, tick)
	scheduler, err := delayed.NewScheduler(dial(), delayed.SchedulerConfig{
		Queue: b.Name, Entries: []delayed.Entry{{Name: "tick", Spec: "@every 1s", Task: delayed.Call(tick)}},
		Owner: "failover", Logger: b.log.Logger(),
	})
	b.Must(err)
	t.q = delayed.NewQueue(b.Name, dial())
	var ctx context.Context
	ctx, t.stop = context.WithCancel(b.T.Context())
	t.wg.Go(func() {
		if err := scheduler.Run(ctx); err != nil {
			b.T.Errorf("Scheduler.Run: %v", err)
		}
	})
	loop := func(once func() error) {
		t.wg.Go(func() {
			for ctx.Err() == nil {
				if err := once(); err != nil {
					t.refused.Add(1)
				}
				select {
				case <-time.After(time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	for range 4 {
		loop(func() error {
			n := t.next.Add(1)
			_, err := t.q.DelayContext(ctx, work, n)
			if err == nil {
				t.accepted.Store(n, true)
				t.enqueued.Add(1)
			}
			return err
		})
	}
	waits, reads := delayed.NewQueue(b.Name, dial()), delayed.NewQueue(b.Name, dial())
	loop(func() error {
		ref, err := t.q.With(delayed.KeepResult(time.Minute)).DelayContext(ctx, work, t.next.Add(1))
		if err != nil {
			return err
		}
		_, err = delayed.Await[int64](ctx, waits.Ref(ref.ID()))
		if err == nil {
			t.awaited.Add(1)
		}
		return err
	})
	loop(func() error {
		_, err := reads.Len(ctx)
		if err == nil {
			t.read.Add(1)
		}
		return err
	})
	return t
}

// goesOn waits until everything has gone well again, and returns how long each thing took.
func (t *traffic) goesOn() string {
	t.b.T.Helper()
	start, report := time.Now(), ""
	left := map[string]func() bool{"connected": func() bool { return t.worker.Status().Connected }}
	for what, count := range map[string]*atomic.Int64{
		"enqueue": &t.enqueued, "run": &t.done, "await": &t.awaited, "read": &t.read, "tick": &t.ticked,
	} {
		before := count.Load()
		left[what] = func() bool { return count.Load() > before+1 } // the first may have begun before
	}
	t.b.Until("everything goes on", func() bool {
		for what, well := range left {
			if well() {
				report += fmt.Sprintf(" %s %v", what, time.Since(start).Round(time.Millisecond))
				delete(left, what)
			}
		}
		return len(left) == 0
	})
	return report
}

// end stops the producers and the scheduler, expects that every accepted task has run, and stops the worker.
func (t *traffic) end() {
	t.b.T.Helper()
	t.stop()
	t.wg.Wait()
	t.b.Until("all accepted tasks have run", func() bool {
		left := 0
		t.accepted.Range(func(n, _ any) bool {
			if _, ran := t.ran.Load(n); !ran {
				left++
			}
			return true
		})
		return left == 0
	})
	t.b.Idle()
	t.worker.mustStop()
}

// TestFailOverBehindOneAddress makes the replica behind an address the master, and the master its replica, while old
// connections stay open.
func TestFailOverBehindOneAddress(t *testing.T) {
	t.Parallel()
	for name, dial := range handles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pair := redistest.StartPair(t)
			b := newBenchOn(t, pair.Master())
			traffic := startTraffic(b, func() *delayed.Store { return b.dial(dial, pair.URL()) })
			for i := range *failOvers {
				traffic.goesOn()
				pair.Settled(t)
				pair.FailOver(t, i%2 == 0)
				b.Conn = pair.Master().Dial(t)
				t.Logf("fail-over %d:%s", i+1, traffic.goesOn())
			}
			traffic.end()
			t.Logf("%d tasks, %d errors of producers and readers", traffic.next.Load(), traffic.refused.Load())
			b.Check(redistest.Invariants{Idle: true})
		})
	}
}

var (
	failOvers = flag.Int("failovers", 3, "fail-overs behind one address")
	halfOpen  = flag.Bool("half-open", false, "drop the packets of each connection in turn")
)

// dial returns a handle that is closed at the end of the test.
func (b *bench) dial(dial func(string) (*delayed.Store, error), url string) *delayed.Store {
	b.T.Helper()
	rdb, err := dial(url)
	b.Must(err)
	b.T.Cleanup(func() { rdb.Close() })
	return rdb
}

// TestSubscriptionOnADemotedMaster: nothing is published on a replica, and no error says so. A program that does
// nothing but wait still hears of the end of a task.
func TestSubscriptionOnADemotedMaster(t *testing.T) {
	t.Parallel()
	for name, dial := range handles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pair := redistest.StartPair(t)
			b := newBenchOn(t, pair.Master())
			waits := b.dial(dial, pair.URL())
			delayed.Signals(waits).Again = time.Hour // it only listens
			q := delayed.NewQueue(b.Name, b.dial(delayed.Dial, pair.URL()))
			f := b.fn("f", func() int { return 7 })
			ref, err := q.With(delayed.KeepResult(time.Minute)).Delay(f)
			b.Must(err)
			answer := make(chan error, 1)
			go func() {
				_, err := delayed.Await[int](t.Context(), delayed.NewQueue(b.Name, waits).Ref(ref.ID()))
				answer <- err
			}()
			subscribed := func(s *redistest.Server) bool {
				channels, err := redis.Strings(s.Do(t, "PUBSUB", "CHANNELS", b.Name+"_ended:*"), nil)
				return err == nil && len(channels) == 1
			}
			b.Until("it listens", func() bool { return subscribed(pair.Master()) })
			pair.FailOver(t, false)
			b.Conn = pair.Master().Dial(t)
			b.Until("it listens to the new master", func() bool { return subscribed(pair.Master()) })
			b.workWith(b.dial(delayed.Dial, pair.URL()), b.config(), f)
			b.Must(await(b, "the end of the task", answer))
		})
	}
}

// TestHalfOpenConnections drops the packets of some connections, of whatever use, and then of all. With -half-open, it
// does so to each of them in turn.
func TestHalfOpenConnections(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t))
	proxy := faultnet.NewProxy(t, b.Server.Addr())
	traffic := startTraffic(b, func() *delayed.Store { return b.dial(delayed.Dial, proxy.URL()) })
	strand := func(which string, is func(n int) bool) (of int) {
		traffic.goesOn()
		of = proxy.Strand(is)
		t.Logf("%s of %d connections:%s", which, of, traffic.goesOn())
		return of
	}
	if *halfOpen {
		for n, of := 0, 1; n < of; n++ {
			of = strand(fmt.Sprint("number ", n), func(i int) bool { return i == n })
		}
	}
	strand("every second", func(n int) bool { return n%2 == 0 })
	red := make(chan bool, 1)
	go func() {
		for traffic.worker.Status().Connected && t.Context().Err() == nil {
			<-time.After(time.Millisecond)
		}
		red <- true
	}()
	strand("all", func(int) bool { return true })
	await(b, "the worker's health to be red meanwhile", red)
	traffic.end()
	b.Check(redistest.Invariants{Idle: true})
}

// TestServerThatClosesIdleConnections: a call on a connection that the server has closed meanwhile is not sent there,
// so it never ends in ErrUnknown.
func TestServerThatClosesIdleConnections(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t, "--timeout", "1"))
	q := delayed.NewQueue(b.Name, b.dial(delayed.Dial, b.Server.URL()))
	f := b.fn("f", func(int) {})
	for i := range 3 {
		if _, err := q.Delay(f, i); err != nil {
			t.Fatalf("after the server has closed connections %d times: %v", i, err)
		}
		b.Until("the server has closed the idle connections", func() bool {
			list, err := redis.String(b.Server.Do(t, "CLIENT", "LIST"), nil)
			return err == nil && !strings.Contains(list, "name=delayed")
		})
	}
}

// TestHeartbeatsOnAServerThatClosesIdleConnections: heartbeats that are further apart do not fail.
func TestHeartbeatsOnAServerThatClosesIdleConnections(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t, "--timeout", "1"))
	cfg := b.config()
	cfg.HeartbeatLife, cfg.NoSweeper = 10*time.Second, true
	w := b.work(cfg)
	for range 2 {
		beat := w.Status().Beat
		b.Until("the next heartbeat", func() bool { return w.Status().Beat.After(beat) })
	}
	w.mustStop()
	if text := b.log.String(); strings.Contains(text, "heartbeat") {
		t.Error(text)
	}
	b.Conn = b.Server.Dial(t)
	b.Check(redistest.Invariants{Idle: true})
}

// TestStopIsBoundedWhileRedisIsFrozen waits longer than all other tests of the package, so they run while it does.
func TestStopIsBoundedWhileRedisIsFrozen(t *testing.T) {
	b := newBenchOn(t, redistest.Start(t))
	entered, canceled := make(chan struct{}), make(chan time.Time, 1)
	f := b.fn("f", func(ctx context.Context) { close(entered); <-ctx.Done(); canceled <- time.Now() })
	cfg := b.config()
	cfg.Grace, cfg.CancelGrace = 500*time.Millisecond, 500*time.Millisecond
	names := delayed.Strict{b.Name}
	for i := range 10 {
		names = append(names, fmt.Sprintf("%s%d", b.Name, i))
	}
	cfg.Queues = names
	w, err := delayed.NewWorker(b.rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register(f); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	type end struct {
		err error
		at  time.Time
	}
	result := make(chan end, 1)
	go func() {
		err := w.Run(ctx)
		result <- end{err, time.Now()}
	}()
	b.Until("connected", func() bool { return w.Status().Connected })
	b.delay(f)
	await(b, "the task", entered)
	b.Server.Pause(t)
	start := time.Now()
	cancel()
	t.Parallel() // which returns when the other tests that are not parallel have run
	at := <-canceled
	t.Logf("handler told to stop after %v", at.Sub(start))
	if d := at.Sub(start); d > 7*time.Second {
		limits.Errorf(t, "the handler was told to stop after %v; Grace is %v", d, cfg.Grace)
	}
	ended := <-result
	d := ended.at.Sub(start)
	t.Logf("Run returned after %v: %v", d, ended.err)
	if d > 30*time.Second {
		limits.Errorf(t, "Run returned after %v", d)
	}
	b.Server.Resume(t)
}

func TestDelayContextIsBoundedWhileRedisIsFrozen(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t))
	f := b.fn("f", func() {})
	src, _, _, err := redisstore.DialSources(b.Server.URL())
	b.Must(err)
	rdb := delayed.FromSource(src)
	defer rdb.Close()
	var conns []redis.Conn
	for range 4 {
		c, err := src.Conn(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Do("PING"); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	for _, c := range conns {
		c.Close()
	}
	// As if they had idled for so long that a PING tests them.
	pool := src.(redisstore.PoolSource).Pool //nolint:errcheck // fails the test
	check := pool.TestOnBorrowContext
	pool.TestOnBorrowContext = func(ctx context.Context, c redis.Conn, used time.Time) error {
		return check(ctx, c, used.Add(-redisstore.PingAfter))
	}
	b.Server.Pause(t)
	defer b.Server.Resume(t)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err = delayed.NewQueue(b.Name, rdb).DelayContext(ctx, f)
	if took := time.Since(start); took > 3*time.Second {
		limits.Errorf(t, "a call bounded by 500 ms took %v: %v", took, err)
	}
}
