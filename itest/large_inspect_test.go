//go:build linux

package itest_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

// largePlaces are scripts that put one message of ARGV[2] bytes, number ARGV[1], where people look for tasks of a
// state. KEYS[1] is the queue.
var largePlaces = []struct{ state, fill string }{
	{"pending", `redis.call('RPUSH', KEYS[1], m)`},
	{"active", `redis.call('HSET', KEYS[1] .. '_processing:dead', 't' .. ARGV[1], m)
		redis.call('SADD', KEYS[1] .. '_workers', 'dead')`},
	{"scheduled", filed("scheduled")},
	{"retry", filed("retry")},
	{"parked", filed("parked")},
	{"archived", filed("archived")},
	{"completed", `redis.call('HSET', KEYS[1] .. '_results', 't' .. ARGV[1], m)
		redis.call('ZADD', KEYS[1] .. '_completed', 4e12, 't' .. ARGV[1])`},
	{"aggregating", `redis.call('RPUSH', KEYS[1] .. '_group:g', m)
		redis.call('ZADD', KEYS[1] .. '_groups', 4e12, 'g')`},
}

// filed is a script that files a message, and as many bytes as what is known of it.
func filed(set string) string {
	return `redis.call('HSET', KEYS[1] .. '_tasks', 't' .. ARGV[1], m)
		redis.call('HSET', KEYS[1] .. '_info', 't' .. ARGV[1], string.rep('x', ARGV[2] / 2))
		redis.call('ZADD', KEYS[1] .. '_` + set + `', 4e12, 't' .. ARGV[1])`
}

// TestLargeMessagesAreLookedAt lists, shows and exports tasks that are too large with the command delayed, and looks at
// them in delayed top. None of these takes memory for the messages, however many there are.
func TestLargeMessagesAreLookedAt(t *testing.T) {
	limits.Only(t)
	program := filepath.Join(t.TempDir(), "delayed")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = "../cmd/delayed"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	server := redistest.Start(t)
	conn := server.Dial(t)
	ways := func(of string) map[string][]string {
		return map[string][]string{
			"list":   {"tasks", "ls", "mail", "-s", of, "-n", "1000"},
			"show":   {"task", "show", "t0", "-q", "mail", "--json"},
			"export": {"export", "mail", "-s", of},
			"queue":  {"queue", "show", "mail"},
		}
	}
	base := map[string]int{}
	for _, place := range largePlaces {
		for name, args := range ways(place.state) {
			base[name] = max(base[name], peakOf(t, program, server.URL(), args))
		}
	}
	if _, err := conn.Do("HSET", "delayed_queues", "mail", 0); err != nil {
		t.Fatal(err)
	}
	topBase := peakOfTop(t, program, server.URL(), "")
	for _, place := range largePlaces {
		sizes := largeSizes()
		if place.state == "completed" { // a record may have a message and a result, so it is too large from 2 MiB on
			sizes = sizes[:2+(len(sizes)-2)/2]
			for i := range sizes[2:] {
				sizes[2+i] = 3 << 20
			}
		}
		if _, err := conn.Do("HSET", "delayed_queues", "mail", 0); err != nil {
			t.Fatal(err)
		}
		fillLarge(t, conn, "mail", place.fill, sizes)
		check := func(way string, grown int) {
			t.Logf("%s, %s: %d MiB of messages, memory has grown by %.1f MiB", place.state, way, sumOf(sizes)>>20,
				float64(grown)/(1<<20))
			if grown >= maxGrowth {
				t.Errorf("%s, %s: memory has grown by %d bytes, expected less than %d", place.state, way, grown,
					maxGrowth)
			}
		}
		for name, args := range ways(place.state) {
			check(name, peakOf(t, program, server.URL(), args)-base[name])
		}
		check("top", peakOfTop(t, program, server.URL(), place.state)-topBase)
		if _, err := redis.String(conn.Do("FLUSHALL")); err != nil {
			t.Fatal(err)
		}
	}
}

// peakOf runs a command line and returns the most memory that its process had, in bytes. Its exit code says no more
// than that some tasks could not be shown.
func peakOf(t *testing.T, program, url string, args []string) int {
	t.Helper()
	cmd := pythonCommand(t, []string{"DELAYED_URL=" + url}, "peak_memory.py", append([]string{program}, args...)...)
	out, err := cmd.CombinedOutput()
	var kib, code int
	if _, scanErr := fmt.Sscan(string(out), &kib, &code); err != nil || scanErr != nil || code < 0 || code > 3 {
		t.Fatalf("delayed %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return kib << 10
}

// peakOfTop opens the queue mail in delayed top, the list of a state if one is given, and a task there, and returns the
// most memory that it had.
func peakOfTop(t *testing.T, program, url, of string) int {
	t.Helper()
	dir := t.TempDir()
	tmux := func(args ...string) string {
		cmd := exec.Command("tmux", append([]string{"-S", "socket"}, args...)...)
		cmd.Dir = dir // the whole path of the socket might be too long for one
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %s: %v: %s", args, err, out)
		}
		return string(out)
	}
	tmux("-f", "/dev/null", "-u", "new-session", "-d", "-x", "200", "-y", "30",
		"exec env LC_ALL=C.UTF-8 DELAYED_URL="+url+" "+program+" top")
	defer tmux("kill-server")
	sees := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			var screen string
			if !becomes(time.Minute, func() bool {
				screen = tmux("capture-pane", "-p")
				return strings.Contains(screen, text)
			}) {
				t.Fatalf("after a minute delayed top does not show %q, but:\n%s", text, screen)
			}
		}
	}
	pid, err := strconv.Atoi(strings.TrimSpace(tmux("display-message", "-p", "#{pane_pid}")))
	if err != nil {
		t.Fatal(err)
	}
	sees("> mail")
	tmux("send-keys", "Enter")
	const path = "Queues › mail › "
	sees(path)
	if of != "" {
		_, after, _ := strings.Cut(tmux("capture-pane", "-p"), path)
		for range placeOf(of) - placeOf(strings.Fields(after)[0]) {
			tmux("send-keys", "Right")
		}
		sees(path+of, "too large", " of ")
		tmux("send-keys", "Enter")
		sees(path+"task", " size ")
	}
	return memoryOf(t, pid, "VmHWM")
}

// placeOf returns where a state is among those of delayed top.
func placeOf(name string) int {
	return slices.IndexFunc(inspect.States, func(s state.Task) bool { return s.String() == name })
}
