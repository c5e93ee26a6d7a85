package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/fakeredis"
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
			t.Errorf("Wait %t: a cancelled call: %v", wait, err)
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
		"rediss://a?ca=redis_tls_test.go":    "holds no certificate",
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
			q, err := delayed.OpenQueue(rdb, delayed.QueueConfig{Name: "mail"})
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

// runs returns everything that has a Run, on one handle.
func (b *bench) runs(rdb *delayed.Redis) map[string]func(context.Context) error {
	b.T.Helper()
	w, err := delayed.NewWorker(rdb, b.config())
	if err != nil {
		b.T.Fatal(err)
	}
	sweeper, err := delayed.NewSweeper(rdb,
		delayed.SweeperConfig{Queues: []string{b.Name}, Interval: 10 * time.Millisecond, Logger: b.log.Logger()})
	if err != nil {
		b.T.Fatal(err)
	}
	scheduler, err := delayed.NewScheduler(rdb, delayed.SchedulerConfig{Queue: b.Name, Logger: b.log.Logger()})
	if err != nil {
		b.T.Fatal(err)
	}
	return map[string]func(context.Context) error{"worker": w.Run, "sweeper": sweeper.Run, "scheduler": scheduler.Run}
}

// TestRunOnAClosedHandle: Run returns an error and does not wait for its context, because it can do nothing any more.
func TestRunOnAClosedHandle(t *testing.T) {
	for _, when := range []string{"before", "meanwhile"} {
		b := newBench(t)
		rdb, err := delayed.Dial(b.Server.URL())
		if err != nil {
			t.Fatal(err)
		}
		runs := b.runs(rdb.WithPrefix("p:"))
		if when == "before" {
			rdb.Close()
		}
		ended := make(chan error)
		for name, run := range runs {
			go func() {
				err := run(t.Context())
				if !errors.Is(err, delayed.ErrClosed) {
					t.Errorf("%s, closed %s: found %v", name, when, err)
				}
				ended <- err
			}()
		}
		if when == "meanwhile" {
			b.Until("the worker is there", func() bool { n := b.Int("EXISTS", "p:"+b.Name+"_workers"); return n == 1 })
			rdb.Close()
		}
		for range runs {
			_ = await(b, "Run to return", ended)
		}
		if when == "before" && b.log.String() != "" {
			t.Errorf("something was tried on a closed handle:\n%s", b.log)
		}
		b.Do("DEL", "p:"+b.Name+"_workers")
	}
}

// TestClosedHandleWithTasks: Redis cannot be told of a task that ends after the handle was closed. Run does not wait
// for that, and its error names both.
func TestClosedHandleWithTasks(t *testing.T) {
	b := newBench(t)
	rdb, err := delayed.Dial(b.Server.URL())
	if err != nil {
		t.Fatal(err)
	}
	cfg := b.config()
	cfg.CancelGrace = time.Hour
	w, err := delayed.NewWorker(rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	started, end := make(chan struct{}), make(chan struct{})
	f := b.fn("f", func() { close(started); <-end })
	if err := w.Register(f); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- w.Run(t.Context()) }()
	b.delay(f)
	await(b, "the task", started)
	rdb.Close()
	b.Until("the worker stops", func() bool { return w.Status().State == state.Stopping })
	close(end)
	if err := await(b, "Run", ended); !errors.Is(err, delayed.ErrClosed) ||
		!strings.Contains(err.Error(), "has not confirmed how 1 tasks ended") {
		t.Errorf("found %v", err)
	}
	if reason := w.Status().StopReason; reason != "closed" {
		t.Errorf("stopped because of %q", reason)
	}
}

// TestDeadlineIsACleanStop: a context that ends by a deadline stops Run like a cancelled one, without logging an error.
func TestDeadlineIsACleanStop(t *testing.T) {
	b := newBench(t)
	var all sync.WaitGroup
	for i := range 4 {
		for name, run := range b.runs(b.rdb) {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(40+10*i)*time.Millisecond)
				defer cancel()
				if err := run(ctx); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
	}
	all.Wait()
	if log := b.log.String(); strings.Contains(log, "cannot") || strings.Contains(log, "level=error") {
		t.Errorf("found\n%s", b.log)
	}
}

// TestCloseEndsSubscriptions: a caller that waits for a signal looks again, and finds that the handle is closed.
func TestCloseEndsSubscriptions(t *testing.T) {
	b := newBench(t)
	c, end := delayed.Signals(b.rdb).Subscribe(b.Name)
	defer end()
	if got := await(b, "the subscription", c); got != "" {
		t.Fatalf("signal %q, expected that the subscription holds", got)
	}
	b.Must(b.rdb.Close())
	if got := await(b, "the end", c); got != "" {
		t.Errorf("signal %q, expected the demand to look again", got)
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
func (b *bench) worksAndSweeps(rdb *delayed.Redis) {
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
		open func() *delayed.Redis
		want string
	}{
		"pool whose Dial returns nil": {func() *delayed.Redis {
			dial := func() (redis.Conn, error) { return nil, nil } //nolint:nilnil // on purpose
			return delayed.FromPool(&redis.Pool{Dial: dial})
		}, "the pool's Dial has returned neither a connection nor an error"},
		"pool whose Dial returns a nil pointer": {func() *delayed.Redis {
			return delayed.FromPool(&redis.Pool{Dial: func() (redis.Conn, error) { return (*emptyConn)(nil), nil }})
		}, "the pool's Dial has returned neither a connection nor an error"},
		"source that returns nil": {func() *delayed.Redis {
			return delayed.FromSource(&emptySource{})
		}, "the Conn of a *delayed_test.emptySource has returned neither a connection nor an error"},
		"source that returns a nil pointer": {func() *delayed.Redis {
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

// TestNamesInACluster: a name whose keys would be in several slots is refused, and the error proposes one that works.
func TestNamesInACluster(t *testing.T) {
	cluster, err := rediscluster.Dial("redis://127.0.0.1:1") // never connects
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	for _, c := range []struct{ prefix, name, want string }{
		{"", "mail", `name it "{mail}"`},
		{"", "{}mail", `name it "{mail}"`},
		{"", "mail}", `name it "{mail}"`},
		{"", "{mail", `name it "{mail}"`},
		{"", "{}", "choose another prefix"},
		{
			"app:", "mail",
			`behind the key prefix "app:" has no tag: all keys of a queue are in one slot of a Redis Cluster ` +
				`because of a {tag} in its name: name it "{mail}"`,
		},
		{"{}", "{mail}", "choose another prefix"},
		{"", "{mail}", ""},
		{"", "{mail}:low", ""},
		{"", "app{mail}", ""},
		{"app:", "{mail}", ""},
		{"{app}:", "mail", ""},
	} {
		rdb := cluster.WithPrefix(c.prefix)
		for where, open := range map[string]func() error{
			"OpenQueue": func() error {
				_, err := delayed.OpenQueue(rdb, delayed.QueueConfig{Name: c.name})
				return err
			},
			"NewWorker": func() error {
				_, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Strict{c.name}})
				return err
			},
			"NewSweeper": func() error {
				_, err := delayed.NewSweeper(rdb, delayed.SweeperConfig{Queues: []string{c.name}})
				return err
			},
			"NewScheduler": func() error {
				_, err := delayed.NewScheduler(rdb, delayed.SchedulerConfig{Queue: c.name})
				return err
			},
		} {
			err := open()
			if c.want == "" && err != nil || c.want != "" &&
				(err == nil || !strings.HasPrefix(err.Error(), "delayed: ") || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %q behind %q: found %v, expected %q", where, c.name, c.prefix, err, c.want)
			}
		}
	}
}

// TestTextsOfHandles: how queues and tasks look in a log.
func TestTextsOfHandles(t *testing.T) {
	rdb, err := delayed.Dial("redis://localhost:1")
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	q := delayed.NewQueue("mail", rdb)
	for _, c := range []struct {
		value any
		want  string
	}{
		{q, "queue mail"},
		{delayed.NewQueue("mail", rdb.WithPrefix("app:")).With(delayed.Header("token", "hunter2")), "queue app:mail"},
		{(*delayed.Queue)(nil), "no queue"},
		{&delayed.Queue{}, "no queue"},
		{delayed.Call(wrongText, "hunter2"), "task github.com/godelayed/delayed_test.wrongText (1 argument)"},
		{delayed.Call(wrongList, "hunter2", 1, 2), "task github.com/godelayed/delayed_test.wrongList (3 arguments)"},
		{delayed.NewGoTask("app/mail.Send"), "task app/mail.Send (0 arguments)"},
		{
			delayed.NewPyTask("mail:send", []any{"hunter2"}, map[string]any{"key": "hunter2"}),
			"task mail:send (2 arguments)",
		},
		{delayed.Call(wrongText, 1), "task that was not built"},
		{&delayed.Task{}, "task that was not built"},
		{(*delayed.Task)(nil), "no task"},
		{(*delayed.Ref)(nil), "no task"},
		{q.Ref("x"), "mail/x"},
		{state.Worker(9), "state.Worker(9)"},
		{state.Worker(-1), "state.Worker(-1)"},
		{state.Task(99), "state.Task(99)"},
		{event.Kind(99), "unknown event"},
		{delayed.Conflict(9), "Conflict(9)"},
		{delayed.Overlap(9), "Overlap(9)"},
	} {
		if got := fmt.Sprint(c.value); got != c.want {
			t.Errorf("found %q, expected %q", got, c.want)
		}
		if _, ok := c.value.(fmt.GoStringer); ok && fmt.Sprintf("%#v", c.value) != c.want {
			t.Errorf("found %#v, expected %q", c.value, c.want)
		}
	}
}
