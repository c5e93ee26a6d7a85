package delayed_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/loop"
)

var lineCount = regexp.MustCompile(` count=(\d+)`)

// linesAbout returns how many lines of a log contain a message, and how many tasks these lines stand for.
func linesAbout(log, message string) (lines, tasks int) {
	for line := range strings.Lines(log) {
		if !strings.Contains(line, message) {
			continue
		}
		n := 1
		if m := lineCount.FindStringSubmatch(line); m != nil {
			n, _ = strconv.Atoi(m[1])
		}
		lines, tasks = lines+1, tasks+n
	}
	return lines, tasks
}

// TestFloodOfBadMessages: the worker logs thousands of bad messages with one line a second, and counts all of them.
func TestFloodOfBadMessages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const n = 2000
	w := b.work(b.config(), b.fn("f", func() {}))
	unknown := b.fn("unknown", func() {})
	began := time.Now()
	for i := range n {
		b.Do("RPUSH", b.Name, fmt.Sprint("rubbish ", i))
		b.Do("RPUSH", b.Name+"_noti", "1")
	}
	calls := make([]*delayed.Task, 500)
	for i := range calls {
		calls[i] = delayed.Call(unknown)
	}
	if _, err := b.q.DelayMany(t.Context(), calls...); err != nil {
		t.Fatal(err)
	}
	b.Until("all are seen to", func() bool { return b.Size("_archived") == n && b.Size("_parked") == len(calls) })
	w.mustStop()
	most := int(time.Since(began)/loop.LineInterval) + 2
	for message, want := range map[string]int{
		"it cannot be decoded":                   n,
		"task parked: this worker cannot run it": len(calls),
	} {
		if lines, tasks := linesAbout(b.log.String(), message); lines > most || tasks != want {
			t.Errorf("%q: %d lines about %d tasks, expected at most %d about %d", message, lines, tasks, most, want)
		}
	}
}

// TestFloodOfBadGroups: the worker logs groups whose lists have the wrong type with one line a second, however many
// there are.
func TestFloodOfBadGroups(t *testing.T) {
	b := newBench(t)
	const n = 300
	for i := range n {
		b.Do("HSET", fmt.Sprint(b.Name, "_group:", i), "a", "hash")
		b.Do("ZADD", b.Name+"_groups", 1, i)
	}
	index, calls := b.indexed("index")
	b.delayWith(b.q.With(delayed.Group("k"), soon), index, "a", 1)
	began := time.Now()
	w := b.work(b.config(), index)
	await(b, "the call of the good group", calls)
	b.Until("all were tried", func() bool { return b.Do("ZCOUNT", b.Name+"_groups", "-inf", 1) == int64(0) })
	w.mustStop()
	most := int(time.Since(began)/loop.LineInterval) + 2
	if lines, groups := linesAbout(b.log.String(), "cannot be put together"); lines > most || groups < n {
		t.Errorf("%d lines about %d groups, expected at most %d about %d", lines, groups, most, n)
	}
	for i := range n {
		b.Do("UNLINK", fmt.Sprint(b.Name, "_group:", i))
	}
	b.Do("UNLINK", b.Name+"_groups")
}

// TestLogOfManyLegacyWorkers: the worker logs the tasks of dead legacy workers with one line a second, and only the
// beginning of an extremely long id.
func TestLogOfManyLegacyWorkers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const n = 200
	for i := range n {
		worker := fmt.Sprint("legacy-", i, strings.Repeat("é", 100_000*(i%2)))
		b.Do("HSET", b.Name+"_processing", worker, fmt.Sprint("rubbish ", i))
	}
	cfg := b.config()
	cfg.HeartbeatLife = time.Second
	began := time.Now()
	w := b.work(cfg, b.fn("f", func() {}))
	b.Until("all are given back and archived", func() bool { return b.Size("_archived") == n })
	w.mustStop()
	most := int(time.Since(began)/loop.LineInterval) + 2
	if lines, tasks := linesAbout(b.log.String(), "gave back the task of a dead legacy worker"); lines > most ||
		tasks != n {
		t.Errorf("%d lines about %d tasks, expected at most %d about %d", lines, tasks, most, n)
	}
	for line := range strings.Lines(b.log.String()) {
		if len(line) > 2*loop.MaxLogField {
			t.Errorf("a line of %d bytes begins with %.200q", len(line), line)
		}
	}
}
