//go:build unix

package dashboard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/itest/dashboard/browser"
	"github.com/godelayed/delayed/state"
)

// TestSelectionOverPages marks tasks on two pages of a list, while the pages are made anew, and deletes all of them at
// once.
func TestSelectionOverPages(t *testing.T) {
	t.Parallel()
	s := newSite(t, asAdmin)
	q := delayed.NewQueue(queueName, s.rdb)
	for i := range 60 {
		at := time.Now().Add(time.Hour + time.Duration(i)*time.Second)
		_, err := q.With(delayed.At(at), delayed.TaskID(fmt.Sprintf("task %02d", i))).
			Enqueue(t.Context(), delayed.NewPyTask("app:send", []any{i}, nil))
		s.Must(err)
	}
	p := browser.Open(t)
	p.Go(s.url + "tasks?queue=mail&state=scheduled")
	p.Until("the page is live", `document.querySelector(".status.live") !== null`)
	p.Click(`tr[data-key="task 03"] input`)
	p.Click(`tr[data-key="task 05"] input`)
	p.Until("two are marked", `document.querySelector("[data-count]").textContent === "2"`)
	// The page is made anew once the number of tasks changes, and keeps the marks.
	_, err := q.With(delayed.In(3*time.Hour)).Enqueue(t.Context(), delayed.NewPyTask("app:send", []any{60}, nil))
	s.Must(err)
	p.Until("the page is made anew", `document.querySelector(".list-line").textContent.includes("61 scheduled")`)
	p.Click(`a[rel=next]`)
	p.Until("the second page is there", `document.querySelector('tr[data-key="task 55"] input') !== null`)
	p.Click(`tr[data-key="task 55"] input`)
	p.Until("the marks of both pages count", `document.querySelector("[data-count]").textContent === "3 (1 here)"`)
	question := p.Accept(true, func() { p.Click(`button[value=delete]`) })
	if !strings.Contains(question, "Delete the 3 selected tasks?") {
		t.Errorf("it asks %q", question)
	}
	p.Until("the notice is there", `document.querySelector(".notice")?.textContent.includes("Deleted 3 tasks.")`)
	p.Until("nothing is marked any more", `document.querySelector("[data-count]").textContent === "0"`)
	ins, err := inspect.New(s.rdb, inspect.Config{})
	s.Must(err)
	for task, err := range ins.All(t.Context(), queueName, inspect.Query{State: state.Scheduled}) {
		s.Must(err)
		if task.ID == "task 03" || task.ID == "task 05" || task.ID == "task 55" {
			t.Errorf("%s is still there", task.ID)
		}
	}
	// All of a page, and none.
	p.Click(`[data-all]`)
	p.Until("the page's tasks are marked", `document.querySelector("[data-count]").textContent === "10"`)
	p.Click(`[data-unselect]`)
	p.Until("no task is marked", `document.querySelector("[data-count]").textContent === "0" &&
		document.querySelector("button[value=delete]").disabled`)
}
