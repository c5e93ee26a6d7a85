//go:build unix

package examples

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
)

// limits makes the tests fail when something takes too long. It is for machines that have nothing else to do.
var limits = os.Getenv("DELAYED_LIMITS") == "1"

func TestQuickstart(t *testing.T) {
	url, conn := realRedis(t)
	for name, url := range map[string]string{"embedded": "", "real Redis": url} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			out := start(t, url, "quickstart").ends(0)
			if took := time.Since(began); limits && took > 15*time.Second {
				t.Errorf("it took %v, expected at most 15 s", took)
			}
			checkQuickstart(t, out)
			if (url == "") != strings.Contains(out, "using the embedded server") {
				t.Errorf("which Redis it uses:\n%s", out)
			}
		})
	}
	if keys, err := redis.Strings(conn.Do("KEYS", "*")); len(keys) > 0 || err != nil {
		t.Errorf("expected that nothing is left in Redis, found %q, %v", keys, err)
	}
}

// checkQuickstart checks what the quickstart prints.
func checkQuickstart(t *testing.T, out string) {
	t.Helper()
	killed := regexp.MustCompile(`worker ([AB])  KILLED in the middle of: fetch harbour.jpg`).FindStringSubmatch(out)
	runs := regexp.MustCompile(`(?m)^  fetch harbour.jpg +ran (\d+) times: worker ([AB]) \(killed\), .*worker ([AB])$`).
		FindStringSubmatch(out)
	if killed == nil || runs == nil || killed[1] != runs[2] || killed[1] == runs[3] {
		t.Errorf("expected that one worker is killed and the other runs its task again, found %q and %q in:\n%s",
			killed, runs, out)
	}
	for _, want := range []string{
		"All 9 tasks are done", "thumbnail of lighthouse.jpg +ran ", "report +ran ",
		`lighthouse.jpg  160 × 120 pixels, \d{3,} bytes\nharbour.jpg     160 × 120`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("expected %q in:\n%s", want, out)
		}
	}
}

// TestQuickstartStays looks at the quickstart that goes on, and presses Ctrl-C.
func TestQuickstartStays(t *testing.T) {
	p := start(t, "", "quickstart", "-stay")
	p.sees("go run ./cmd/delayed top\n")
	url := regexp.MustCompile(`export DELAYED_URL=(\S+)`).FindStringSubmatch(p.output())[1]
	rdb, err := delayed.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	ins, err := inspect.New(rdb, inspect.Config{})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "another task", func() error {
		queues, err := ins.Queues(t.Context())
		if err == nil && (len(queues) != 1 || queues[0].Today.Processed <= 10) {
			err = fmt.Errorf("found %+v", queues)
		}
		return err
	})
	p.interrupt()
	p.ends(0)
	start(t, "", "quickstart", "-wrong").ends(1)
}

// TestQuickstartInterrupted presses Ctrl-C.
func TestQuickstartInterrupted(t *testing.T) {
	url, conn := realRedis(t)
	p := start(t, url, "quickstart")
	p.sees("done: fetch")
	p.interrupt()
	if out := p.ends(1); strings.Contains(out, "ended by itself") {
		t.Errorf("found:\n%s", out)
	}
	if n, err := redis.Int(conn.Do("DBSIZE")); n > 0 || err != nil {
		t.Errorf("expected that nothing is left in Redis, found %d keys, %v", n, err)
	}
}

// TestQuickstartKilled kills the quickstart itself: its workers must not stay behind.
func TestQuickstartKilled(t *testing.T) {
	url, conn := realRedis(t)
	p := start(t, url, "quickstart")
	p.sees("done: fetch")
	p.sends(syscall.SIGKILL)
	await(t, "end of the workers", func() error {
		list, err := redis.String(conn.Do("CLIENT", "LIST"))
		if n := strings.Count(list, "\n"); n > 1 {
			return errors.New(list)
		}
		return err
	})
}

func TestProducerAndWorker(t *testing.T) {
	url := embeddedURL(t)
	out := start(t, url, "producer").ends(0)
	for _, want := range []string{
		"delayed: mail/", "delayed by 2 s: mail/", "delayed together: [mail/", "delayed by path: mail/",
		"refused: delayed: github.com/godelayed/delayed/examples/mail.Welcome: argument 1: " +
			"expected int64, found string",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("expected %q in:\n%s", want, out)
		}
	}
	w := start(t, url, "worker", "-queues", "mail")
	for _, want := range []string{
		"mail to user 42: Welcome", "mail to user 42: Order 7, 2 lines, 10.99 EUR", "mail to user 43: Willkommen",
		"mail to user 44: Welcome", "mail to user 42: New: Tea, Biscuits",
	} {
		w.sees(want)
	}
	w.sends(syscall.SIGTERM)
	w.ends(0)
}

func TestCustomLogger(t *testing.T) {
	for _, kind := range []string{"logrus", "slog"} {
		t.Run(kind, func(t *testing.T) {
			out := start(t, "", "custom-logger", kind).ends(0)
			if !strings.Contains(out, "resized harbour.jpg at attempt 2\n") {
				t.Errorf("found:\n%s", out)
			}
			failed := false
			for line := range strings.Lines(out) {
				if strings.HasPrefix(line, "resized") {
					continue
				}
				var entry struct{ Level, Msg, Service, Function, Error string }
				if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Msg == "" ||
					entry.Service != "shop" {
					t.Errorf("%q: %+v, %v", line, entry, err)
				}
				failed = failed || entry.Function == "photos.Resize" && entry.Error == "the disk is full" &&
					strings.HasPrefix(strings.ToLower(entry.Level), "warn")
			}
			if !failed {
				t.Errorf("expected a line about the failure, found:\n%s", out)
			}
		})
	}
	start(t, "", "custom-logger", "zap").ends(1)
	start(t, "", "custom-logger").ends(1)
}

func TestDependencies(t *testing.T) {
	out := start(t, "", "dependencies").ends(0)
	for _, want := range []string{
		"mail to ann@example.com: We have your order 1.\n",
		"mail to bob@example.com: We have your order 2.\n",
	} {
		if strings.Count(out, want) != 1 {
			t.Errorf("expected %q once in:\n%s", want, out)
		}
	}
}

func TestIsolated(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("isolated tasks need Linux")
	}
	out := start(t, "", "isolated").ends(0)
	for _, want := range []string{
		"terminated; it was asked to end", "exit status 1", "The worker goes on: hello world",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("expected %q in:\n%s", want, out)
		}
	}
}

func TestGracefulShutdown(t *testing.T) {
	url := embeddedURL(t)
	p := start(t, url, "graceful-shutdown")
	p.sees("film Metropolis begins")
	p.sees("mail to ann@example.com begins")
	p.interrupt()
	out := p.ends(0)
	want := "mail to ann@example.com is sent\nfilm Metropolis is given back: delayed: worker is shutting " +
		"down\nstopped cleanly\n"
	if !strings.HasSuffix(out, want) {
		t.Errorf("expected %q at the end of:\n%s", want, out)
	}

	// The next run finds the film in the queue, and has a task that does not stop.
	p = start(t, url, "graceful-shutdown", "deaf")
	p.sees("film Metropolis begins")
	p.sees("dream begins")
	p.sees("is sent")
	p.sends(syscall.SIGTERM)
	if out := p.ends(3); strings.Count(out, "film Metropolis begins") != 1 ||
		!strings.HasSuffix(out, "still running: [example.Dream]\n") {
		t.Errorf("found:\n%s", out)
	}

	// A second signal ends it at once.
	p = start(t, url, "graceful-shutdown", "deaf")
	p.sees("dream begins")
	p.sees("film Metropolis begins")
	p.interrupt()
	p.sees("is given back")
	p.interrupt()
	p.ends(-1)
}
