package web_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/web"
)

// Groups are shown, and operators make them due.
func TestGroupsAreShownAndFired(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.has(b.get(web.Viewer, "groups"), "No groups wait")
	gathered := make(chan int, 1)
	fn := delayed.Func(func(n []int) { gathered <- len(n) }, delayed.Name("search.Reindex"),
		delayed.Gather(delayed.GatherPolicy{Grace: time.Hour}))
	for i := range 3 {
		_, err := b.q.With(delayed.Group(hostile)).Delay(fn, []int{i})
		b.Must(err)
	}
	var page string
	b.Until("the group is shown", func() bool {
		page = b.get(web.Operator, "groups")
		return strings.Contains(page, "search.Reindex")
	})
	b.has(page, "tasks?function=search.Reindex&amp;group=", `data-name="Calls">3<`, "Fire now", "&lt;script&gt;")
	b.harmless(page)
	b.hasNot(b.get(web.Viewer, "groups"), "Fire now")
	fields := []string{"queue", queueName, "key", hostile, "function", "search.Reindex"}
	b.refused(web.Viewer, "groups", "fire", fields...)
	b.work(delayed.WorkerConfig{}, fn)
	b.has(b.do(web.Operator, "groups", "fire", fields...), `class="notice"`, "is due now")
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	select {
	case n := <-gathered:
		if n != 3 {
			t.Errorf("%d calls were combined", n)
		}
	case <-ctx.Done():
		t.Error("the group was not combined")
	}
	b.Until("the group is gone", func() bool {
		return strings.Contains(b.get(web.Viewer, "groups"), "No groups wait")
	})
	b.has(b.do(web.Operator, "groups", "fire", fields...), `class="notice bad"`)
}
