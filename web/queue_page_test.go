package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web"
)

// TestQueuePage has a worker run tasks, and finds on the page of the queue what they have done and what waits.
func TestQueuePage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	release := make(chan struct{})
	hold := delayed.Func(func() { <-release }, delayed.Name("app/report.Build"))
	w, _ := b.work(delayed.WorkerConfig{}, welcome, fails, hold)
	for i := range 3 {
		_, err := b.q.Delay(welcome, i)
		b.Must(err)
	}
	_, err := b.q.Delay(fails)
	b.Must(err)
	_, err = b.q.With(delayed.In(time.Hour)).Delay(welcome, 1)
	b.Must(err)
	b.Until("all have run", func() bool {
		q, err := b.ins.Queue(bg, queueName)
		b.Must(err)
		return q.Today.Processed == 4
	})
	for range 2 {
		_, err := b.q.Delay(hold)
		b.Must(err)
	}
	b.Until("both executors are busy", func() bool { return w.Status().Busy == 2 })
	for i := range 5 {
		_, err := b.q.Delay(welcome, i)
		b.Must(err)
	}
	var page string
	b.Until("the page knows of all", func() bool {
		page = b.get(web.Viewer, "queue?name=mail")
		_, note := figure(page, "Failed")
		return note == "1 of 4 runs" && strings.Contains(row(page, w.ID()), "report.Build") &&
			strings.Contains(row(page, path("welcome")), ">5</a>")
	})
	for name, want := range map[string]string{
		"Pending": "5", "Active": "2", "Scheduled": "1", "Retry": "1", "Parked": "0", "Aggregating": "0",
		"Archived": "0", "Completed": "0", "Failed": "25 %", "Executors busy": "2 / 2",
	} {
		if got, _ := figure(page, name); got != want {
			t.Errorf("%s is %s, expected %s", name, got, want)
		}
	}
	b.has(page, "<h1>Queue mail</h1>", `href="tasks?queue=mail&amp;state=retry">1</a>`, "KiB in Redis",
		`href="groups?queue=mail">0</a>`)
	b.has(row(page, path("welcome")), `data-name="runs">3<`, `data-name="failed">0<`,
		`href="tasks?function=github.com%2Fgodelayed%2Fdelayed%2Fweb_test.welcome&amp;queue=mail&amp;state=`,
		`href="function?path=`, ">web_test.welcome</a>")
	b.has(row(page, path("fails")), `title="1 of 1">100 %<`)
	b.has(row(page, w.ID()), `href="worker?id=`+w.ID(), `class="state running"`, `data-name="claims">2<`, "mail")
	if n := strings.Count(page, `<th scope="row" class="nowrap">`); n != 1 {
		t.Errorf("%d days are shown, expected only those with counts", n)
	}
	b.has(row(page, b.today()), `<td class="n">4</td><td class="n">1</td><td class="n">1</td><td class="n zero">0</td>`)
	b.has(picture(page, "spread"), `class="column s1"`, "p50 ")
	b.hasNot(page, "of 5 tasks", "style=")
	close(release)
}

// today returns the date by Redis's clock.
func (b *bench) today() string {
	return time.UnixMilli(redistest.Time(b.T, b.Conn)).UTC().Format(time.DateOnly)
}

// TestQueuePageSamples says that it has looked at the first tasks alone.
func TestQueuePageSamples(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 250 {
		_, err := b.q.Delay(welcome, i)
		b.Must(err)
	}
	page := b.get(web.Viewer, "queue?name=mail")
	b.has(page, "Pending counts the first 200 of 250 tasks", "No worker serves it", "250 tasks wait, and no worker")
	b.has(row(page, path("welcome")), ">200</a>", `data-name="runs">0<`)
	b.has(b.get(web.Viewer, "queue?name=mail&span=day&days=all"), "In the last 24 hours", "per 15 min")
}

func TestPageOfNoQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for address, want := range map[string]int{
		"queue": http.StatusBadRequest, "queue?name=a%20b": http.StatusBadRequest,
		"queue?name=nobody": http.StatusNotFound,
	} {
		if a := b.ask(web.Viewer, http.MethodGet, address, nil); a.Status != want {
			t.Errorf("%s answers %d, expected %d:\n%s", address, a.Status, want, a.Body)
		}
	}
	// A typo in a form makes no queue.
	_, err := b.q.Delay(welcome, 1)
	b.Must(err)
	for _, action := range []string{"pause", "resume", "weight", "restart", "delete"} {
		b.has(b.do(web.Admin, "queue?name=mail", action, "name", "nobody", "weight", "3", "force", "1"),
			"nobody has enqueued a task there")
	}
	names, err := b.ins.Names(bg)
	if len(names) != 1 || err != nil {
		t.Errorf("there are queues %q, %v", names, err)
	}
}

// queue describes the queue "mail".
func (b *bench) queue() inspect.Queue {
	b.T.Helper()
	q, err := b.ins.Queue(bg, queueName)
	b.Must(err)
	return q
}

func TestQueueActions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w, stop := b.work(delayed.WorkerConfig{}, welcome)
	const address = "queue?name=mail"
	b.has(b.get(web.Operator, address), ">Pause</button>", `name="weight"`, "Restart its workers")
	page := b.do(web.Operator, address, "pause", "name", queueName)
	b.has(page, "Queue mail is paused", ">Resume</button>", `class="state paused"`)
	b.hasNot(page, ">Pause</button>")
	if b.queue().Paused.IsZero() {
		t.Error("it is not paused")
	}
	b.has(b.do(web.Operator, address, "resume", "name", queueName), "Queue mail goes on.", ">Pause</button>")
	if q := b.queue(); !q.Paused.IsZero() {
		t.Errorf("it is paused: %v", q.Paused)
	}
	b.has(b.do(web.Operator, address, "weight", "name", queueName, "weight", "12"), "Queue mail has weight 12.",
		`value="12"`)
	for _, wrong := range []string{"-1", "1001", "many"} {
		b.has(b.do(web.Operator, address, "weight", "name", queueName, "weight", wrong),
			"expected a weight from 1 to 1000")
	}
	if q := b.queue(); q.Weight != 12 {
		t.Errorf("its weight is %d, expected 12", q.Weight)
	}
	b.has(b.do(web.Operator, address, "weight", "name", queueName, "weight", ""), "as each worker is configured")
	b.has(b.do(web.Admin, address, "delete", "name", queueName, "force", "1"), "not empty")
	b.has(b.do(web.Operator, address, "restart", "name", queueName), "their supervisors start them again")
	b.Until("the worker stops", func() bool { return w.Status().State == state.Stopped })
	stop()
	_, err := b.q.Delay(welcome, 1)
	b.Must(err)
	_, err = b.q.With(delayed.In(time.Hour)).Delay(welcome, 1)
	b.Must(err)
	b.has(b.get(web.Admin, address), `data-confirm="Delete all 1 scheduled tasks of queue mail?"`)
	for _, wrong := range []string{"active", "none", ""} {
		b.has(b.do(web.Admin, address, "empty", "name", queueName, "state", wrong), "expected a state of tasks")
	}
	b.has(b.do(web.Admin, address, "empty", "name", queueName, "state", "scheduled"), "Delete", "job")
	b.Until("the scheduled task is deleted", func() bool { return b.queue().Scheduled == 0 })
	if q := b.queue(); q.Pending != 1 {
		t.Errorf("it has %d pending tasks, expected 1", q.Pending)
	}
	b.has(b.do(web.Admin, address, "delete", "name", queueName), "not empty", "<h1>Queue mail</h1>")
	b.has(b.do(web.Admin, address, "delete", "name", queueName, "force", "1"), "Queue mail is deleted.",
		"<h1>Overview</h1>")
	if names, err := b.ins.Names(bg); len(names) > 0 || err != nil {
		t.Errorf("there are queues %q, %v", names, err)
	}
	records, err := b.ins.Audit(bg, 0, 100)
	b.Must(err)
	if len(records) < 5 || records[0].Actor != "admin" || records[len(records)-1].Actor != "operator" {
		t.Errorf("the audit log has %+v", records)
	}
}

// Those who may not do something see no form for it, and are refused.
func TestQueueRoles(t *testing.T) {
	t.Parallel()
	const address = "queue?name=mail"
	all := []string{"pause", "resume", "weight", "restart", "empty", "delete"}
	for _, test := range []struct {
		name     string
		change   func(*web.Config)
		role     web.Role
		refused  []string
		has, not []string
	}{
		{
			"viewer", func(*web.Config) {}, web.Viewer, all, nil,
			[]string{`<form method="post" action="queue"`, "Steer it"},
		},
		{
			"operator", func(*web.Config) {}, web.Operator,
			[]string{"empty", "delete"},
			[]string{"Steer it", ">Pause<"},
			[]string{"Delete the queue", `href="enqueue?queue=mail"`},
		},
		{
			"admin", func(*web.Config) {}, web.Admin, nil,
			[]string{"Delete the queue", "data-confirm=", `href="enqueue?queue=mail"`},
			nil,
		},
		{
			"read-only", func(c *web.Config) { c.ReadOnly = true }, web.Admin, all, nil,
			[]string{"<form method=\"post\" action=\"queue\"", "Steer it"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, test.change)
			_, err := b.q.Delay(welcome, 1)
			b.Must(err)
			for _, action := range test.refused {
				b.refused(test.role, address, action, "name", queueName, "weight", "3", "force", "1",
					"state", "pending")
			}
			if q := b.queue(); q.Pending != 1 || !q.Paused.IsZero() || q.Weight != 0 {
				t.Errorf("what was refused was done: %+v", q)
			}
			page := b.get(test.role, address)
			b.has(page, test.has...)
			b.hasNot(page, test.not...)
		})
	}
}
