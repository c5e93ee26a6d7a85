//go:build unix

package workermain

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

func TestSetupRegistersMethods(t *testing.T) {
	q, flags := newQueue(t)
	c := launch(t, command("setup", flags...))
	c.sees("setting up")
	c.sends(syscall.SIGUSR1)
	delay(t, q, (*speaker).Say, "hello")
	c.sees("methods said hello")
	c.sends(syscall.SIGTERM)
	c.ends(exitClean)
}

func TestPeriodicEntries(t *testing.T) {
	t.Parallel()
	_, flags := newQueue(t)
	c := launch(t, command("periodic", flags...))
	c.sees("said hello again")
	c.sends(syscall.SIGTERM)
	c.ends(exitClean)
}

func TestSetupIsCalledOff(t *testing.T) {
	_, flags := newQueue(t)
	c := launch(t, command("setup", flags...))
	c.sees("setting up")
	c.sends(syscall.SIGTERM)
	c.ends(exitClean)
	c.sees("stopped before the worker started")
}

func TestSetupThatHangs(t *testing.T) {
	_, flags := newQueue(t)
	c := launch(t, command("stuck setup", flags...))
	c.sees("setting up")
	c.sends(syscall.SIGTERM)
	c.sees("stopping")
	c.sends(syscall.SIGTERM)
	c.ends(exitForced)
}

func TestStopDuringSetup(t *testing.T) {
	_, flags := newQueue(t)
	c := launch(t, command("stuck setup", flags...))
	c.sees("setting up")
	c.sends(syscall.SIGTERM)
	c.sees("stopping")
	c.sends(syscall.SIGUSR1)
	c.ends(exitClean)
	if strings.Contains(c.Output(), `msg="worker started"`) {
		t.Errorf("the worker should not have started:\n%s", c.Output())
	}
}

// A Setup that fails for a reason of its own has failed, although the program stops anyway.
func TestSetupFailsDuringAStop(t *testing.T) {
	_, flags := newQueue(t)
	c := launch(t, command("late setup", flags...))
	c.sees("setting up")
	c.sends(syscall.SIGTERM)
	c.ends(exitFailed)
	c.sees("setting up: the database was left half migrated")
}

func TestStartFails(t *testing.T) {
	_, flags := newQueue(t)
	for program, want := range map[string]string{
		"bad setup":     "setting up: no database",
		"bad functions": "function cannot be delayed(.|\n)*function cannot be delayed",
		"no functions":  "no functions",
	} {
		t.Run(program, func(t *testing.T) {
			c := launch(t, command(program, flags...))
			c.ends(exitFailed)
			c.sees(want)
		})
	}
}

func TestRedisIsAway(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("silent", func(t *testing.T) {
		c := launch(t, command("main", "-redis", "redis://"+l.Addr().String(), "-queues", "mail", "-wait", "1s"))
		c.ends(exitFailed)
		c.sees("Redis did not answer within 1s")
	})
	l.Close()
	t.Run("refused", func(t *testing.T) {
		c := launch(t, command("main", "-redis", "redis://"+l.Addr().String(), "-queues", "mail", "-wait", "200ms"))
		c.ends(exitFailed)
		c.sees("Redis did not answer within 200ms.*refused")
		c.sees("waiting for Redis")
	})
	t.Run("called off", func(t *testing.T) {
		c := launch(t, command("main", "-redis", "redis://"+l.Addr().String(), "-queues", "mail", "-wait", "1h"))
		c.sees("waiting for Redis")
		c.sends(syscall.SIGTERM)
		c.ends(exitClean)
	})
}

func TestRedisComesLate(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Stop(t)
	c := launch(t, command("main", "-redis", server.URL(), "-queues", "mail", "-wait", "1h"))
	c.sees("waiting for Redis")
	server.Restart(t)
	c.sees("worker started")
	c.sends(syscall.SIGTERM)
	c.ends(exitClean)
}

func TestRedisRefuses(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Do(t, "CONFIG", "SET", "requirepass", "right")
	for url, want := range map[string]string{
		"redis://" + server.Addr():                       "NOAUTH",
		"redis://:hunter2@" + server.Addr():              "WRONGPASS",
		"redis://nobody:hunter2@" + server.Addr():        "WRONGPASS",
		"redis://:right@" + server.Addr() + "/999":       "out of range",
		"redis://:hunter2@" + redistest.Shared(t).Addr(): "without any password",
	} {
		t.Run(want, func(t *testing.T) {
			// It does not wait: time changes nothing about a wrong password.
			c := launch(t, command("main", "-redis", url, "-queues", "mail", "-wait", "1h"))
			c.ends(exitFailed)
			c.sees(want)
			if strings.Contains(c.Output(), "hunter2") {
				t.Errorf("the log shows a password:\n%s", c.Output())
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for text, want := range map[string]bool{
		"NOAUTH Authentication required.":              true,
		"ERR invalid password":                         true,
		"ERR max number of clients reached":            false,
		"LOADING Redis is loading the dataset":         false,
		"CLUSTERDOWN The cluster is down":              false,
		"NOPERM this user has no permissions":          true,
		"DENIED Redis is running in protected mode":    true,
		"MASTERDOWN Link with MASTER is down":          false,
		"MISCONF Redis is configured to save snapshot": false,
	} {
		if got := refused(fmt.Errorf("delayed: PING: %w", redis.Error(text))); got != want {
			t.Errorf("%q: expected %v, found %v", text, want, got)
		}
	}
}

func TestURLsOfSeveralHosts(t *testing.T) {
	for url, want := range map[string]bool{
		"redis://localhost":                               false,
		"redis://a,b:p,w@localhost:6379/0?x=a,b":          false,
		"redis://localhost/0?mastery=1":                   false,
		"unix:///tmp/a,b.sock":                            false,
		"redis://a:6379,b:6379":                           true,
		"rediss://user:password@a,b/0":                    true,
		"redis://s1:26379?master=m":                       true,
		"redis://s1:26379/0?sentinel_password=x&master=m": true,
	} {
		if got := severalHosts(url); got != want {
			t.Errorf("%s: expected %v, found %v", url, want, got)
		}
		_, err := dial(nil, url)
		if hint := err != nil && strings.Contains(err.Error(), "workermain.Config.Dial"); hint != want {
			t.Errorf("%s: %v", url, err)
		}
	}
	called := ""
	_, err := dial(func(rawURL string) (*delayed.Store, error) {
		called = rawURL
		return nil, nil
	}, "redis://a,b")
	if called != "redis://a,b" || err != nil {
		t.Errorf("a Dial of one's own: called with %q, %v", called, err)
	}
}

func TestJSONLog(t *testing.T) {
	_, flags := newQueue(t)
	c := launch(t, command("main", append(flags, "-log-format", "json", "-log-level", "debug")...))
	c.sees("worker started")
	c.sends(syscall.SIGTERM)
	c.ends(exitClean)
	for line := range strings.Lines(c.Output()) {
		var entry struct {
			Level, Msg string
			Time       time.Time
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Msg == "" ||
			time.Since(entry.Time) > time.Hour {
			t.Errorf("%q: %+v, %v", line, entry, err)
		}
	}
}

func TestLogLevel(t *testing.T) {
	q, flags := newQueue(t)
	c := launch(t, command("main", append(flags, "-log-level", "error")...))
	delay(t, q, say, "hello")
	c.sees("said hello")
	c.sends(syscall.SIGTERM)
	c.ends(exitClean)
	if got := c.Output(); got != "said hello\n" {
		t.Errorf("expected no log, found:\n%s", got)
	}
}

func TestRedisIsAwayAtTheEnd(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	c := launch(t, command("main", "-redis", server.URL(), "-queues", "mail", "-cancel-grace", "0"))
	delay(t, delayed.NewQueue("mail", rdb), hold)
	c.sees("holding")
	server.Kill(t)
	c.sends(syscall.SIGTERM)
	c.sends(syscall.SIGUSR1)
	c.ends(exitFailed)
	c.sees("worker did not end cleanly.*may run again")
}
