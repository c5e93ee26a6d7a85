package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web"
)

// The audit log is shown newest first, page by page, by who did it and by what was done.
func TestAuditIsShown(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *web.Config) { c.HideArguments = true })
	b.has(b.get(web.Viewer, "audit"), "Nobody has done anything yet")
	fn := delayed.Func(spills, delayed.Name("mail.Fails"))
	for i := range 12 {
		_, err := b.q.With(delayed.TaskID(fmt.Sprint("t", i))).Delay(fn, i)
		b.Must(err)
	}
	strange, err := inspect.New(b.rdb, inspect.Config{Actor: hostile})
	b.Must(err)
	b.Must(b.ins.Pause(bg, queueName))
	_, err = b.ins.DoAll(bg, queueName, inspect.Archive(), inspect.Query{
		State: state.Pending, Filter: inspect.Filter{Function: "Fails", Arg: "0=7"},
	}, nil)
	b.Must(err)
	_, err = strange.Do(bg, queueName, inspect.MoveTo("other"), "t1", "nothing")
	b.Must(err)

	page := b.get(web.Operator, "audit")
	b.has(page, "move to other", "1 failed", "task?id=t1&amp;queue=mail", "archive", "Argument", "0=7", "pause",
		"&lt;script&gt;")
	b.harmless(page)
	if strings.Index(page, "move to other</th>") > strings.Index(page, "pause</th>") {
		t.Error("the newest is not the first")
	}
	b.hasNot(b.get(web.Viewer, "audit"), "0=7")
	page = b.get(web.Operator, "audit?actor=test&action=pause")
	b.has(page, ">pause</th>")
	b.hasNot(page, "move to other</th>", "archive</th>")
	b.has(b.get(web.Operator, "audit?action=move"), "move to other</th>")
	b.has(b.get(web.Operator, "audit?actor=nobody"), "None of the 3 records")
	for range 200 {
		b.Must(b.ins.Resume(bg, queueName))
	}
	page = b.get(web.Operator, "audit?action=resume")
	b.has(page, `href="audit?action=resume&amp;skip=200" rel="next"`)
	page = b.get(web.Operator, "audit?skip=200")
	b.has(page, "move to other</th>", `rel="prev"`)
	b.hasNot(page, `rel="next"`)
}
