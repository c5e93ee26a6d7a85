package loop

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed/internal/limits"
)

// journalled returns a journal and a function for the lines that it has logged.
func journalled() (j Journal, lines func() []string) {
	var out bytes.Buffer
	l := logrus.New()
	l.SetOutput(&out)
	l.SetFormatter(&logrus.TextFormatter{DisableTimestamp: true, DisableColors: true})
	return NewJournal(l), func() []string { return strings.Split(strings.TrimSpace(out.String()), "\n") }
}

// TestTroubleIsLoggedOnceInTenSeconds: the journal counts what it has not logged meanwhile, and logs the end of each
// error once.
func TestTroubleIsLoggedOnceInTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, lines := journalled()
		var c Complaints
		j.Relief(&c, "nothing was wrong")
		for range 21 {
			j.Trouble(&c, "trouble", errors.New("away"))
			<-time.After(time.Second)
		}
		j.Relief(&c, "over")
		j.Relief(&c, "over")
		j.Trouble(&c, "again", errors.New("gone"))
		<-time.After(ComplaintInterval - 1)
		j.Trouble(&c, "again", errors.New("gone"))
		<-time.After(1)
		j.Trouble(&c, "again", errors.New("gone"))
		want := []string{
			"level=warning msg=trouble error=away",
			"level=warning msg=trouble error=away repeated=9",
			"level=warning msg=trouble error=away repeated=9",
			"level=info msg=over",
			"level=warning msg=again error=gone",
			"level=warning msg=again error=gone repeated=1",
		}
		if got := lines(); !slices.Equal(got, want) {
			t.Errorf("found the lines\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

func TestLinesAboutOneHaveNoCount(t *testing.T) {
	j, lines := journalled()
	for _, n := range []int{1, 2} {
		j.Counted(n).Info("x")
	}
	if got := lines(); !slices.Equal(got, []string{"level=info msg=x", "level=info msg=x count=2"}) {
		t.Errorf("found %q", got)
	}
}

// TestLineSaysTheSame: a line has the fields, the texts and the error that it has when they are added one by one.
func TestLineSaysTheSame(t *testing.T) {
	j, lines := journalled()
	err := errors.New("no\nluck")
	fields := func() Fields { return Fields{"id": "a\tb", "attempt": 2, "delay": time.Second.String()} }
	for _, j := range []Journal{j, j.With("worker", "w")} {
		j.Line(WarnLevel, fields(), err, "it failed")
		j.WithAll(fields()).WithError(err).Warn("it failed")
	}
	if got := lines(); len(got) != 4 || got[0] != got[1] || got[2] != got[3] || !strings.Contains(got[2], "worker=w") {
		t.Errorf("found the lines\n%s", strings.Join(got, "\n"))
	}
}

// unread is an error whose text nobody should ask for.
type unread struct{ t *testing.T }

func (e unread) Error() string {
	e.t.Error("the text was asked for")
	return ""
}

// TestLineOfALevelThatIsLeftOut takes no time, whether or not the journal has fields of its own.
func TestLineOfALevelThatIsLeftOut(t *testing.T) {
	j, lines := journalled()
	for _, j := range []Journal{j, j.With("worker", "w")} {
		if n := testing.AllocsPerRun(10, func() { j.Line(DebugLevel, nil, unread{t}, "snoozed") }); n != 0 {
			limits.Errorf(t, "it took %v allocations", n)
		}
	}
	if got := lines(); !slices.Equal(got, []string{""}) {
		t.Errorf("found %q", got)
	}
}

func TestJournalWithoutALogger(t *testing.T) {
	if got := NewJournal(nil).FieldLogger; got != logrus.StandardLogger() {
		t.Errorf("found %v, expected logrus's standard logger", got)
	}
}

// bare is a formatter that writes all texts as they are.
type bare struct{}

func (bare) Format(e *logrus.Entry) ([]byte, error) {
	line := []byte(e.Message)
	for key, value := range e.Data {
		line = fmt.Appendf(line, " %s=%v", key, value)
	}
	return append(line, '\n'), nil
}

// TestLogTextsAreEscaped: fields and errors are one short line, whatever the formatter does.
func TestLogTextsAreEscaped(t *testing.T) {
	const hostile = "a\nb\x1b[2J\u009b\u202e\u2066\u2028"
	var out bytes.Buffer
	l := logrus.New()
	l.SetOutput(&out)
	l.SetFormatter(bare{})
	long := strings.Repeat(hostile, 1<<16)
	err := fmt.Errorf("so: %w", errors.New(hostile))
	j := NewJournal(l).With("id", hostile)
	j.WithError(err).Warn("x")
	j.With("id", long).Trouble(new(Complaints), "x", errors.New(long))
	const escaped = `a\nb\x1b[2J\u009b\u202e\u2066\u2028`
	lines := strings.SplitAfter(out.String(), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], "id="+escaped) ||
		!strings.Contains(lines[0], "error=so: "+escaped) {
		t.Errorf("found %.1000q", lines)
	}
	for _, line := range lines {
		if len(line) > 40_000 {
			t.Errorf("a line of %d bytes", len(line))
		}
		for _, r := range strings.TrimSuffix(line, "\n") {
			if !unicode.IsPrint(r) {
				t.Errorf("%U in %.1000q", r, line)
				break
			}
		}
	}
	if found := (loggedError{err}); !errors.Is(found, err) {
		t.Error("the error cannot be unwrapped")
	}
}
