package delayed

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
		for range 2 { // nobody would log later what is held back now
			limit.log(a, out.write("after the end"))
		}
		out.expect(t, "0s a0 1", "303ms b 1", "1s a9 9", "2s a19 10", "3s a24 5", "1m2.525s again 1", "1m2.825s last 1",
			"1m2.825s after the end 1", "1m2.825s after the end 1")
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
