package loop

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
)

// linesOf collects what a LineLimit logs: seconds since the start, and number.
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
		var limit LineLimit
		out := &linesOf{start: time.Now()}
		a, b := LineKey{"q", "undecodable", ""}, LineKey{"q", "unknown function", "f"}
		for i := range 25 {
			limit.Log(a, out.write(fmt.Sprint("a", i)))
			if i == 3 {
				limit.Log(b, out.write("b"))
			}
			<-time.After(101 * time.Millisecond)
		}
		<-time.After(time.Minute)
		// All are counted, and after a second without any, a line is logged at once again.
		limit.Log(a, out.write("again"))
		<-time.After(300 * time.Millisecond)
		limit.Log(a, out.write("last"))
		limit.Close()
		for range 2 { // nothing would log later what is held back now
			limit.Log(a, out.write("after the end"))
		}
		out.expect(t, "0s a0 1", "303ms b 1", "1s a9 9", "2s a19 10", "3s a24 5", "1m2.525s again 1", "1m2.825s last 1",
			"1m2.825s after the end 1", "1m2.825s after the end 1")
	})
}

func TestLogLinesOfManyFunctionsShareOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limit LineLimit
		out := &linesOf{start: time.Now()}
		for i := range 10 * maxLineKeys {
			limit.Log(LineKey{"q", "unknown function", fmt.Sprint("f", i)}, out.write("f"))
		}
		limit.Close()
		if len(out.got) > maxLineKeys+2 || len(limit.lines) > 0 {
			t.Errorf("%d lines for the functions of %d tasks", len(out.got), 10*maxLineKeys)
		}
		if last := out.got[len(out.got)-1]; last != fmt.Sprintf("0s f %d", 9*maxLineKeys-1) {
			t.Errorf("the last line is %q", last)
		}
	})
}

// Functions that had a line before there were too many keep it.
func TestLogLinesBesideManyFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limit LineLimit
		for i := range 2 * maxLineKeys {
			limit.Log(LineKey{"q", "unknown function", fmt.Sprint("f", i)}, func(int) {})
		}
		out := &linesOf{start: time.Now()}
		for range 3 {
			limit.Log(LineKey{"q", "unknown function", "f0"}, out.write("f0"))
		}
		limit.Close()
		out.expect(t, "0s f0 3")
	})
}

func TestLongLogFieldsAreCut(t *testing.T) {
	var out strings.Builder
	l := logrus.New()
	l.SetOutput(&out)
	long := strings.Repeat("é", MaxLogField)
	NewJournal(l).With("id", "a"+long).With("n", 5).With("queue", long[:MaxLogField]).Info("x")
	if got := out.String(); !strings.Contains(got,
		fmt.Sprintf(`id="a%s… (%d bytes)"`, long[:MaxLogField-2], 1+len(long))) ||
		!strings.Contains(got, "n=5") || !strings.Contains(got, long[:MaxLogField]+`"`) &&
		!strings.Contains(got, "queue="+long[:MaxLogField]) {
		t.Errorf("found %s", got)
	}
}
