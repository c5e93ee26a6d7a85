package web_test

import (
	"strings"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/web"
)

// Parked tasks are shown by what they wait for, with who can run them and what to do if nobody can.
func TestParkedTasksAreShown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.has(b.get(web.Viewer, "parked"), "Nothing is parked")
	name := delayed.Name("example.com/app/mail.Letter")
	unknown := delayed.Func(func(int) {}, delayed.Name("example.com/app/mail.Gone"))
	for i := range 2 {
		_, err := b.q.Delay(unknown, i)
		b.Must(err)
		_, err = b.q.Delay(delayed.Func(func(user2) {}, name), user2{Name: "Ann", Email: "x"})
		b.Must(err)
		_, err = b.q.Enqueue(bg, delayed.NewPyTask("shop.orders:bill", []any{hostile}, nil))
		b.Must(err)
	}
	b.work(delayed.WorkerConfig{}, delayed.Func(func(user1) {}, name))
	shows := func(texts ...string) {
		b.T.Helper()
		b.Until(strings.Join(texts, ", "), func() bool {
			page := b.get(web.Viewer, "parked")
			for _, text := range texts {
				if !strings.Contains(page, text) {
					return false
				}
			}
			return true
		})
	}
	var page string
	b.Until("both tasks of each function are parked", func() bool {
		page = b.get(web.Viewer, "parked")
		return strings.Count(page, `data-name="Tasks">2<`) == 3
	})
	b.has(page, "mail.Gone", "mail.Letter", "shop.orders:bill", "unknown function", "<code>1.Email</code>",
		"1 worker knows the function", "Start a Python worker of mail",
		"Start a worker of mail that registers the function",
		"tasks?function=example.com%2Fapp%2Fmail.Gone&amp;queue=mail&amp;reason=unknown&#43;function&amp;state=parked")
	b.harmless(page)

	// Workers of another queue know it.
	b.work(delayed.WorkerConfig{Queues: delayed.Strict{"other"}}, unknown)
	shows("or move the tasks to", "queue?name=other")
	w, _ := b.work(delayed.WorkerConfig{}, delayed.Func(func(int) {}, delayed.Name("mail.New"),
		delayed.Alias("example.com/app/mail.Gone")))
	b.Until("the worker that knows the alias takes them", func() bool {
		page := b.get(web.Viewer, "parked")
		return !strings.Contains(page, "mail.Gone") || strings.Contains(page, w.ID())
	})
	b.Until("they have run", func() bool { return !strings.Contains(b.get(web.Viewer, "parked"), "mail.Gone") })
}
