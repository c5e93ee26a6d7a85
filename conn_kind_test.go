package delayed_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/fakeredis"
)

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
