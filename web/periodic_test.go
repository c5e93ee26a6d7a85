package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/web"
)

// entry sets a periodic entry that does not tick by itself during a test.
func (b *bench) entry(name string, change ...func(*delayed.Entry)) {
	b.T.Helper()
	e := delayed.Entry{
		Name: name, Spec: "30 8 1 1 *", Zone: "Europe/Berlin",
		Task: delayed.Call(delayed.Func(spills, delayed.Name("mail.Fails")), 1),
	}
	for _, f := range change {
		f(&e)
	}
	b.Must(b.q.Periodic().Set(bg, e))
	b.Until("it is shown", func() bool { return strings.Contains(b.get(web.Viewer, "periodic"), name) })
}

// Periodic entries are shown with their next ticks and what became of the last ones.
func TestPeriodicEntriesAreShown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.has(b.get(web.Viewer, "periodic"), "No periodic entries", "WorkerConfig.Schedulers")
	b.entry("yearly", func(e *delayed.Entry) {
		e.Overlap, e.Jitter, e.CatchUp = delayed.OverlapSkip, time.Minute, 3
		e.From = time.Date(2098, 5, 1, 0, 0, 0, 0, time.UTC)
	})
	b.entry("other")
	b.has(b.get(web.Viewer, "periodic"), "entry?name=yearly&amp;queue=mail", "30 8 1 1 *", "Europe/Berlin",
		`datetime="2099-01-01T07:30:00Z" data-exact`)
	b.hasNot(b.get(web.Viewer, "periodic"), "Run now")
	b.hasNot(b.get(web.Viewer, "periodic?q=YEAR"), "name=other")
	b.has(b.get(web.Viewer, "periodic?q=nothing"), "No such entry")
	page := b.get(web.Viewer, "entry?queue=mail&name=yearly")
	b.has(page, "2099-01-01T07:30:00Z", "2103-01-01T07:30:00Z", "up to 3 missed ticks", "up to 1 min", "skip",
		"08:30:00 CET on Thu 1 Jan 2099", "nobody", "It has not ticked yet", "No worker of mail knows mail.Fails")
	b.hasNot(page, "2104-01-01", "Run now")
	for _, address := range []string{"entry?queue=mail&name=none", "entry?queue=none&name=yearly"} {
		if a := b.ask(web.Viewer, http.MethodGet, address, nil); a.Status != http.StatusNotFound {
			t.Errorf("%s answers %d", address, a.Status)
		}
	}
}

// Operators run, pause and resume entries, and admins remove them.
func TestActionsOfEntries(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.entry("yearly")
	address := "entry?queue=mail&name=yearly"
	fields := []string{"queue", queueName, "name", "yearly"}
	for _, action := range []string{"run", "pause", "resume", "remove"} {
		b.refused(web.Viewer, address, action, fields...)
	}
	b.refused(web.Operator, address, "remove", fields...)
	b.hasNot(b.get(web.Operator, address), ">Remove<")

	page := b.do(web.Operator, address, "run", fields...)
	b.has(page, `class="notice"`, "runs now, as task yearly@")
	b.Until("its history leads to the task", func() bool {
		return strings.Contains(b.get(web.Viewer, address), "task?id=yearly%40")
	})
	b.has(b.do(web.Operator, address, "pause", fields...), "ticks no more")
	b.Until("it is shown as paused", func() bool {
		return strings.Contains(b.get(web.Operator, address), ">Resume<")
	})
	b.has(b.get(web.Operator, address), "None while it is paused")
	b.has(b.do(web.Operator, "periodic", "resume", fields...), "ticks again")
	b.Until("it ticks again", func() bool { return strings.Contains(b.get(web.Operator, address), ">Pause<") })
	b.has(b.do(web.Admin, address, "remove", fields...), "is removed", "<h1>Periodic</h1>")
	b.Until("it is gone", func() bool {
		return strings.Contains(b.get(web.Viewer, "periodic"), "No periodic entries")
	})
	b.has(b.do(web.Operator, "periodic", "run", fields...), `class="notice bad"`)
	records, err := b.ins.Audit(bg, 0, 10)
	b.Must(err)
	if len(records) != 4 || records[0].Action != "remove entry" || records[0].Actor != "admin" ||
		records[3].Action != "run entry" || records[3].Actor != "operator" {
		t.Errorf("%+v", records)
	}
}
