package delayed_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

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
