//go:build unix

package dashboard_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/itest/dashboard/browser"
)

// crowd is the queue with 100,000 tasks, which no worker serves.
const crowd = "backlog"

// pending is the list of 100,000 pending tasks, as DUMP of Redis gives it. It is made once for all tests.
var pending struct {
	once sync.Once
	dump string
}

// fillCrowd brings many pending tasks into a queue, and a few in other states.
func (s *site) fillCrowd() {
	s.T.Helper()
	q := delayed.NewQueue(crowd, s.rdb)
	calls := make([]*delayed.Task, 1000)
	for i := range calls {
		calls[i] = delayed.NewGoTask("mail.Welcome", i, "en")
	}
	key := strings.TrimSuffix(s.Name, queueName) + crowd
	pending.once.Do(func() {
		for range 100 {
			_, err := q.DelayMany(s.T.Context(), calls...)
			s.Must(err)
		}
		var err error
		pending.dump, err = redis.String(s.Do("DUMP", key), nil)
		s.Must(err)
	})
	s.Do("RESTORE", key, 0, pending.dump, "REPLACE")
	for i := range 12 {
		_, err := q.With(delayed.In(time.Hour), delayed.TaskID(fmt.Sprintf("later %02d", i))).
			Enqueue(s.T.Context(), delayed.NewGoTask("mail.Welcome", i, "de"))
		s.Must(err)
	}
}

// act is what a user does on a page: open a menu, fill in a field, press a button, and answer a question.
type act struct {
	page     string    // its address below the overview; "": the page that is open
	open     string    // what to click first
	fill     [2]string // a field and its text
	button   string
	question string // that is answered with yes; "": none is asked
	says     string // of the notice afterwards
}

// The widths of a desktop's screen and of a phone's.
const (
	wide   = 1400
	narrow = 390
)

// do does it, on a wide screen and a narrow one in turns. On both, the mouse reaches what it needs, and nothing makes
// the page wider than the screen.
func (s *site) do(p *browser.Page, a act) {
	s.T.Helper()
	if s.acts++; s.acts%2 == 0 {
		p.Size(narrow, 900)
	} else {
		p.Size(wide, 900)
	}
	if a.page != "" {
		p.Go(s.url + a.page)
		p.Until("the page is live", live)
	}
	if a.open != "" {
		p.Click(a.open)
	}
	reach := func() {
		s.T.Helper()
		fits(s.T, p)
		if s.T.Failed() {
			s.T.FailNow() // where the page is wider, phones show it smaller, and clicks miss
		}
		for _, selector := range []string{a.open, a.fill[0], a.button} {
			if selector != "" {
				p.Reach(selector)
			}
		}
	}
	reach()
	if s.acts%2 == 0 {
		p.Size(wide, 900)
	} else {
		p.Size(narrow, 900)
	}
	reach()
	if a.fill[0] != "" {
		p.Type(a.fill[0], a.fill[1])
	}
	if a.question == "" {
		p.Click(a.button)
	} else if asked := p.Accept(true, func() { p.Click(a.button) }); !strings.Contains(asked, a.question) {
		s.T.Errorf("%s: it asks %q, expected %q", a.button, asked, a.question)
	}
	said := `(document.querySelector(".notice, .job")?.innerText ?? "")`
	p.Until("the page says "+a.says, said+fmt.Sprintf(".includes(%q)", a.says))
	p.Until("the page is live again", live)
}

// live is true once a page has loaded and its events come.
const live = `document.readyState === "complete" && (!document.body.dataset.live || ` +
	`document.querySelector(".status.live"))`

// button returns the selector of the button of an action.
func button(do string) string { return `button[name=do][value="` + do + `"]` }

// summary returns the selector of what opens the menu that holds the button of an action.
func summary(do string) string { return `details:has(` + button(do) + `) > summary` }

// form returns the selector of the button of a form that does something without naming it on the button.
func form(do string) string { return `form:has(input[name=do][value="` + do + `"]) button` }

// TestActionsInBrowser does everything that pages offer, as an admin, with 100,000 tasks present.
func TestActionsInBrowser(t *testing.T) {
	t.Parallel()
	cfg := asAdmin
	cfg.Refresh = time.Second
	s := newSite(t, cfg)
	s.fill()
	s.fillCrowd()
	p := browser.Open(t)
	p.Forgive("status of 422") // forms with mistakes
	p.Forgive("status of 404") // tasks that have ended
	s.actOnTask(p)
	s.actOnLists(p)
	s.actOnEntries(p)
	s.do(p, act{page: "groups", button: button("fire"), says: "Group daily of queue mail is due now"})
	s.enqueue(p)
	s.actOnQueues(p)
	s.actOnWorkers(p)
	p.Go(s.url + "audit")
	p.Until("the audit log tells who did what", `document.querySelector("main").innerText.includes("ann")`)
}

// actOnTask does to single tasks what their pages offer.
func (s *site) actOnTask(p *browser.Page) {
	s.T.Helper()
	task := func(i int) string { return fmt.Sprintf("task?queue=%s&id=later+%02d", crowd, i) }
	s.do(p, act{page: task(0), button: button("run"), says: "Made pending 1 task"})
	s.do(p, act{page: task(1), button: button("archive"), says: "Archived 1 task"})
	s.do(p, act{button: button("retry"), says: "Made pending 1 task"})
	s.do(p, act{
		page: task(2), open: summary("reschedule"), fill: [2]string{"#when", "2h"}, button: button("reschedule"),
		says: "Rescheduled 1 task",
	})
	s.do(p, act{
		page: task(3), open: summary("move"), fill: [2]string{"#to", queueName}, button: button("move"),
		says: "Moved 1 task",
	})
	s.do(p, act{page: task(4), button: button("cancel"), question: "Cancel this task?", says: "Canceled 1 task"})
	s.do(p, act{page: task(5), button: button("delete"), question: "Delete this task?", says: "Deleted 1 task"})
	// A scheduled task of a queue whose workers have published its parameters.
	p.Go(s.url + "tasks?queue=" + queueName + "&state=scheduled")
	p.Click(".task-cell a")
	p.Until("the task is there", live+` && document.querySelector("a.button[href^=edit]")`)
	p.Click("a.button[href^=edit]")
	p.Until("the form is there", live+` && document.querySelector("#arg1")`)
	p.Eval(`document.querySelector("#arg1").value = "many"`, nil)
	p.Click(button("save"))
	p.Until("the form says what is wrong", `document.querySelector("#arg1[aria-invalid]")`)
	p.Eval(`document.querySelector("#arg1").value = "4711"`, nil)
	s.do(p, act{button: button("save"), says: "The task has other arguments now."})
	p.Until("the call has the new argument", `document.querySelector("#call").innerText.includes("4711")`)
}

// actOnLists does to tasks what lists offer, to selected ones and to all.
func (s *site) actOnLists(p *browser.Page) {
	s.T.Helper()
	list := "tasks?queue=" + crowd + "&state="
	row := func(i int) string { return fmt.Sprintf(`tr[data-key="later %02d"] input`, i) }
	s.do(p, act{page: list + "scheduled", open: row(6), button: button("run"), says: "Made pending 1 task"})
	s.do(p, act{open: row(7), button: button("archive"), says: "Archived 1 task"})
	p.Click(row(8))
	s.do(p, act{
		open: summary("reschedule"), fill: [2]string{"#when", "3h"}, button: button("reschedule"),
		says: "Rescheduled 1 task",
	})
	p.Click(row(9))
	s.do(p, act{
		open: summary("move"), fill: [2]string{"#to", queueName}, button: button("move"), says: "Moved 1 task",
	})
	s.do(p, act{
		open: row(10), button: button("cancel"), question: "Cancel the 1 selected tasks?", says: "Canceled 1 task",
	})
	s.do(p, act{
		page: list + "archived", open: `[data-all]`, button: button("retry"), says: "Made pending 1 task",
	})
	// A filter, and all tasks that match it.
	p.Go(s.url + list + "pending")
	p.Until("the list is there", live)
	p.Type("#f-search", `Welcome(77, "en")`)
	p.Keys("\r")
	p.Until("the list is filtered", live+` && document.querySelector(".chips") !== null`)
	s.do(p, act{
		open: summary("all-archive"), button: button("all-archive"), question: "Archive", says: "100 %",
	})
	p.Until("the job has ended", `document.querySelector(".state.good")?.innerText === "done"`)
	p.Until("a hundred tasks are archived", `document.querySelector(".figures dd").innerText === "100"`)
	s.do(p, act{
		page: list + "pending", open: summary("all-delete"), button: button("all-delete"), question: "Delete all",
		says: "Looked at",
	})
	p.Click(button("cancel"))
	p.Until("the job has stopped, or had ended",
		`(document.querySelector(".notice")?.innerText ?? "").match(/The job (ends|had ended)/)`)
	p.Go(s.url + "jobs")
	p.Until("both jobs are listed", live+` && document.querySelectorAll("tbody tr").length === 2`)
}

// actOnEntries runs, pauses, resumes and removes a periodic entry.
func (s *site) actOnEntries(p *browser.Page) {
	s.T.Helper()
	s.do(p, act{page: "periodic", button: button("pause"), says: "Entry nightly ticks no more until it is resumed"})
	s.do(p, act{button: button("resume"), says: "Entry nightly ticks again"})
	s.do(p, act{page: "entry?queue=mail&name=nightly", button: button("run"), says: "Entry nightly runs now"})
	s.do(p, act{
		page: "entry?queue=mail&name=nightly", button: button("remove"), question: "Remove this entry",
		says: "Entry nightly is removed",
	})
}

// enqueue calls a function by the form that is made of its signature.
func (s *site) enqueue(p *browser.Page) {
	s.T.Helper()
	p.Go(s.url + "enqueue?queue=mail&function=mail.Welcome")
	p.Type("#arg1", "forty")
	p.Type("#arg2", `"en"`)
	p.Click(button("enqueue"))
	p.Until("the form says what is wrong", `document.querySelector("#arg1[aria-invalid]")`)
	p.Eval(`document.querySelector("#arg1").value = "40"`, nil)
	s.do(p, act{button: button("enqueue"), says: "is enqueued"})
	p.Until("its worker has run it", `document.querySelector("main").innerText.includes("it has completed")`)
}

// actOnQueues steers queues, and empties and deletes one.
func (s *site) actOnQueues(p *browser.Page) {
	s.T.Helper()
	s.do(p, act{page: "queue?name=" + queueName, button: form("pause"), says: "Queue mail is paused"})
	s.do(p, act{button: form("resume"), says: "Queue mail goes on"})
	p.Eval(`document.querySelector("#weight").value = ""`, nil)
	s.do(p, act{fill: [2]string{"#weight", "7"}, button: form("weight"), says: "Queue mail has weight 7"})
	s.do(p, act{
		page: "queue?name=" + crowd, button: `button[name=state][value=archived]`, question: "archived tasks of queue",
		says: "Looked at",
	})
	s.do(p, act{
		page: "queue?name=" + crowd, open: `input[name=force]`, button: form("delete"),
		question: "Delete queue backlog", says: "Queue backlog is deleted",
	})
}

// actOnWorkers pauses, resumes, quiets and stops the worker, and restarts those of a queue.
func (s *site) actOnWorkers(p *browser.Page) {
	s.T.Helper()
	s.do(p, act{page: "workers", button: form("pause"), says: "claims no more tasks until it is resumed"})
	p.Until("it can be resumed", `document.querySelector('input[name=do][value=resume]')`)
	s.do(p, act{button: form("resume"), says: "claims tasks again"})
	p.Until("its page is linked", live)
	p.Click(`tbody th a`)
	p.Until("its page is there", live+` && document.querySelector('input[name=do][value=quiet]')`)
	s.do(p, act{button: form("quiet"), question: "Quiet this worker?", says: "claims no more tasks"})
	s.do(p, act{
		page: "queue?name=" + queueName, button: form("restart"), question: "finish what they run and to stop?",
		says: "finish what they run and stop",
	})
}
