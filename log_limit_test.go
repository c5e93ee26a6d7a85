package delayed

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
)

// linesOf collects what a lineLimit logs: seconds since the start, and number.
type linesOf struct {
	start time.Time
	mu    sync.Mutex
	got   []string
}

func (l *linesOf) write(what string) func(int) {
	return func(n int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.got = append(l.got, fmt.Sprintf("%v %s %d", time.Since(l.start).Round(time.Millisecond), what, n))
	}
}

func (l *linesOf) expect(t *testing.T, want ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.got, want) {
		t.Errorf("expected the lines %q, found %q", want, l.got)
	}
}

func TestLogLinesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limit lineLimit
		out := &linesOf{start: time.Now()}
		a, b := lineKey{"q", "undecodable", ""}, lineKey{"q", "unknown function", "f"}
		for i := range 25 {
			limit.log(a, out.write(fmt.Sprint("a", i)))
			if i == 3 {
				limit.log(b, out.write("b"))
			}
			<-time.After(101 * time.Millisecond)
		}
		<-time.After(time.Minute)
		// All are counted, and after a quiet second a line comes at once again.
		limit.log(a, out.write("again"))
		<-time.After(300 * time.Millisecond)
		limit.log(a, out.write("last"))
		limit.close()
		limit.log(a, out.write("after the end"))
		out.expect(t, "0s a0 1", "303ms b 1", "1s a9 9", "2s a19 10", "3s a24 5", "1m2.525s again 1", "1m2.825s last 1",
			"1m2.825s after the end 1")
	})
}

func TestLogLinesOfManyFunctionsShareOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limit lineLimit
		out := &linesOf{start: time.Now()}
		for i := range 10 * maxLineKeys {
			limit.log(lineKey{"q", "unknown function", fmt.Sprint("f", i)}, out.write("f"))
		}
		limit.close()
		if len(out.got) > maxLineKeys+2 || len(limit.lines) > 0 {
			t.Errorf("%d lines for the functions of %d tasks", len(out.got), 10*maxLineKeys)
		}
		if last := out.got[len(out.got)-1]; last != fmt.Sprintf("0s f %d", 9*maxLineKeys-1) {
			t.Errorf("the last line is %q", last)
		}
	})
}

var lineCount = regexp.MustCompile(` count=(\d+)`)

// linesAbout returns how many lines of a log have a message, and how many tasks they are about.
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

// TestFloodOfBadMessages logs a line a second about what comes by the thousand, and counts all of it.
func TestFloodOfBadMessages(t *testing.T) {
	b := newBench(t)
	const n = 2000
	w := b.work(b.config(), b.fn("f", func() {}))
	unknown := b.fn("unknown", func() {})
	began := time.Now()
	for i := range n {
		b.do("RPUSH", b.name, fmt.Sprint("rubbish ", i))
		b.do("RPUSH", b.name+"_noti", "1")
	}
	calls := make([]*Task, 500)
	for i := range calls {
		calls[i] = Call(unknown)
	}
	if _, err := b.q.DelayMany(t.Context(), calls...); err != nil {
		t.Fatal(err)
	}
	b.until("all are seen to", func() bool { return b.size("_archived") == n && b.size("_parked") == len(calls) })
	w.mustStop()
	most := int(time.Since(began)/lineInterval) + 2
	for message, want := range map[string]int{"it cannot be decoded": n,
		"task parked: this worker cannot run it": len(calls)} {
		if lines, tasks := linesAbout(b.log.String(), message); lines > most || tasks != want {
			t.Errorf("%q: %d lines about %d tasks, expected at most %d about %d", message, lines, tasks, most, want)
		}
	}
}

// TestFloodOfBadGroups logs a line a second about groups whose lists are of another type, however many there are.
func TestFloodOfBadGroups(t *testing.T) {
	b := newBench(t)
	const n = 300
	for i := range n {
		b.do("HSET", fmt.Sprint(b.name, "_group:", i), "a", "hash")
		b.do("ZADD", b.name+"_groups", 1, i)
	}
	index, calls := b.indexed("index")
	b.delayWith(b.q.With(Group("k"), soon), index, "a", 1)
	began := time.Now()
	w := b.work(b.config(), index)
	await(b, "the call of the good group", calls)
	b.until("all were tried", func() bool { return b.do("ZCOUNT", b.name+"_groups", "-inf", 1) == int64(0) })
	w.mustStop()
	most := int(time.Since(began)/lineInterval) + 2
	if lines, groups := linesAbout(b.log.String(), "cannot be put together"); lines > most || groups < n {
		t.Errorf("%d lines about %d groups, expected at most %d about %d", lines, groups, most, n)
	}
	for i := range n {
		b.do("UNLINK", fmt.Sprint(b.name, "_group:", i))
	}
	b.do("UNLINK", b.name+"_groups")
}

// TestLogOfManyLegacyWorkers logs a line a second about the tasks of dead legacy workers, and of an id without end only
// the beginning.
func TestLogOfManyLegacyWorkers(t *testing.T) {
	b := newBench(t)
	const n = 200
	for i := range n {
		worker := fmt.Sprint("legacy-", i, strings.Repeat("é", 100_000*(i%2)))
		b.do("HSET", b.name+"_processing", worker, fmt.Sprint("rubbish ", i))
	}
	cfg := b.config()
	cfg.HeartbeatLife = time.Second
	began := time.Now()
	w := b.work(cfg, b.fn("f", func() {}))
	b.until("all are given back and archived", func() bool { return b.size("_archived") == n })
	w.mustStop()
	most := int(time.Since(began)/lineInterval) + 2
	if lines, tasks := linesAbout(b.log.String(), "gave back the task of a dead legacy worker"); lines > most ||
		tasks != n {
		t.Errorf("%d lines about %d tasks, expected at most %d about %d", lines, tasks, most, n)
	}
	for line := range strings.Lines(b.log.String()) {
		if len(line) > 2*maxLogField {
			t.Errorf("a line of %d bytes begins with %.200q", len(line), line)
		}
	}
}

func TestLongLogFieldsAreCut(t *testing.T) {
	var out strings.Builder
	l := logrus.New()
	l.SetOutput(&out)
	long := strings.Repeat("é", maxLogField)
	newJournal(l).with("id", "a"+long).with("n", 5).with("queue", long[:maxLogField]).Info("x")
	if got := out.String(); !strings.Contains(got,
		fmt.Sprintf(`id="a%s… (%d bytes)"`, long[:maxLogField-2], 1+len(long))) ||
		!strings.Contains(got, "n=5") || !strings.Contains(got, long[:maxLogField]+`"`) &&
		!strings.Contains(got, "queue="+long[:maxLogField]) {
		t.Errorf("found %s", got)
	}
}
