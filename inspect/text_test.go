package inspect_test

import (
	"strings"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// TestPrintable escapes what a terminal or a log must not get.
func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                         "",
		"mail.Welcome":             "mail.Welcome",
		"Grüße, 世界":                "Grüße, 世界",
		"\x1b[2Jclear":             `\x1b[2Jclear`,
		"two\nlines\r\t":           `two\nlines\r\t`,
		"\u202egnp.exe\u2066":      `\u202egnp.exe\u2066`,
		"\u2028\u0085\u00a0\ufeff": `\u2028\u0085\u00a0\ufeff`,
		"bad\xff\xfeutf-8":         `bad\xff\xfeutf-8`,
		"\ufffd":                   "\ufffd",
		"null\x00":                 `null\x00`,
	} {
		if got := inspect.Printable(text); got != want {
			t.Errorf("%q: found %s, expected %s", text, got, want)
		}
	}
}

// TestLongCallsAreClipped shows calls with large and deep arguments.
func TestLongCallsAreClipped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.q.Delay(welcome, 1, strings.Repeat("ä", 100_000))
	b.Must(err)
	_, err = b.q.Delay(gathered, make([]int, 10_000))
	b.Must(err)
	for _, task := range b.tasks(inspect.Query{State: state.Pending}) {
		if len(task.Call) > 1100 || !strings.HasSuffix(task.Call, "…)") {
			t.Errorf("%d bytes: %s", len(task.Call), task.Call)
		}
	}
}

// TestRedact hides arguments and headers from who looks and from filters.
func TestRedact(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.q.With(delayed.Header("token", "secret")).Delay(welcome, 42, "secret")
	b.Must(err)
	ins, err := inspect.New(b.rdb, inspect.Config{Redact: func(c *inspect.Contents) {
		delete(c.Headers, "token")
		for i := range c.Args {
			if _, ok := c.Args[i].(string); ok {
				c.Args[i] = "…"
			}
		}
	}})
	b.Must(err)
	page, err := ins.Tasks(bg, queueName, inspect.Query{State: state.Pending})
	b.Must(err)
	if len(page.Tasks) != 1 || page.Tasks[0].Call != `inspect_test.welcome(42, "…")` || len(page.Tasks[0].Headers) > 0 {
		t.Errorf("%+v", page.Tasks)
	}
	page, err = ins.Tasks(bg, queueName, inspect.Query{
		State: state.Pending, Filter: inspect.Filter{Text: "secret"},
	})
	b.Must(err)
	if len(page.Tasks) != 0 {
		t.Errorf("a filter has found what is hidden: %+v", page.Tasks)
	}
}
