package web_test

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/web"
)

// hostile is a text that would do harm if a page showed it as it is, and tagged the part of it that paths may have.
const (
	tagged  = `<script>alert(1)</script>"'&`
	hostile = tagged + "\x1b[31m\u202e"
)

var errMailbox = errors.New("mailbox full")

func spills(context.Context, int) error { return errMailbox }

// spoiled makes a queue that producers have used, with a key of a wrong type.
func (b *bench) spoiled(name, suffix string) {
	b.T.Helper()
	_, err := delayed.NewQueue(name, b.rdb).Delay(delayed.Func(func(int) {}, delayed.Name("x.Y")), 1)
	b.Must(err)
	key := strings.TrimSuffix(b.Name, queueName) + name + suffix
	b.Do("DEL", key)
	b.Do("LPUSH", key, "x")
	if b.Do("TYPE", key) != "list" {
		b.T.Fatalf("%s is no list", key)
	}
}

type user1 struct {
	Name string
	Age  int
	Next *user1
}

type user2 struct {
	Name  string
	Age   float64
	Email string
	Next  *user2
}

// The page of functions shows what workers know of them and what they have done, and versions that differ.
func TestFunctionsAreShown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.has(b.get(web.Viewer, "functions"), "No functions yet", "Worker.Register")
	name, alias := delayed.Name("example.com/app/mail.Invite"), delayed.Alias("example.com/app/old.Invite")
	old := delayed.Func(func(user1) error { return errMailbox }, name)
	b.work(delayed.WorkerConfig{}, old)
	_, err := b.q.Delay(old, user1{})
	b.Must(err)
	b.Until("the run is counted", func() bool {
		return strings.Contains(b.get(web.Viewer, "functions"), "100 %")
	})
	page := b.get(web.Viewer, "functions")
	b.has(page, "function?path=example.com%2Fapp%2Fmail.Invite&amp;queue=mail", "mail.Invite(web_test.user1)",
		"1 worker", "&lt; 0.1")
	b.hasNot(page, "signatures")
	b.work(delayed.WorkerConfig{}, delayed.Func(func(user2, bool) int { return 1 }, name, alias))
	b.Until("both versions are shown", func() bool {
		return strings.Contains(b.get(web.Viewer, "functions"), "2 signatures")
	})
	b.has(b.get(web.Viewer, "functions?q=INVITE"), "mail.Invite(web_test.user2, bool) int", "2 workers")
	b.has(b.get(web.Viewer, "functions?q=nothing"), "No such function", "nothing")
	page = b.get(web.Viewer, "function?queue=mail&path=example.com/app/mail.Invite")
	b.has(page, "example.com/app/old.Invite", "parameter 1: web_test.user1 → web_test.user2",
		"parameter 1.Age: int64 → float64", "field Email is new: string", "parameter 2 is new: bool",
		"result: none → int", "aliases: none → example.com/app/old.Invite", "worker?id=",
		"tasks?function=example.com%2Fapp%2Fmail.Invite&amp;queue=mail&amp;state=retry", "100 %")
	if a := b.ask(web.Viewer, http.MethodGet, "function?queue=mail&path=none", nil); a.Status != http.StatusNotFound {
		t.Errorf("an unknown function: %d", a.Status)
	}
}

// A queue with a key of a wrong type is listed, and does not hide the others.
func TestBrokenQueuesDoNotHideOthers(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{
		"_retry", "_workers", "_functions", "_periodic", "_groups", "_parked", "_archived", "_info",
	} {
		t.Run(suffix, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.spoiled("spoiled", suffix)
			b.work(delayed.WorkerConfig{}, delayed.Func(spills, delayed.Name("mail.Fails")))
			b.entry("yearly")
			_, err := b.q.Delay(delayed.Func(func(int) {}, delayed.Name("mail.Gone")), 1)
			b.Must(err)
			pages := map[string]string{
				"functions": "mail.Fails", "workers": "mail (strict)", "periodic": "yearly", "parked": "mail.Gone",
				"deaths": "Archived because", "groups": "Groups",
			}
			for page, text := range pages {
				b.Until(page+" shows the rest", func() bool { return strings.Contains(b.get(web.Viewer, page), text) })
			}
		})
	}
}

// Texts from outside do no harm.
func TestHostileNamesOfFunctions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	fn := delayed.Func(func(int) {}, delayed.Name("x.F"+tagged), delayed.Alias(tagged))
	b.work(delayed.WorkerConfig{}, fn)
	b.Until("it is shown", func() bool { return strings.Contains(b.get(web.Viewer, "functions"), "x.F") })
	for _, page := range []string{"functions", "functions?q=" + "%3Cscript%3E"} {
		b.harmless(b.get(web.Viewer, page))
	}
}

// harmless spills the test if a page shows what is only in hostile texts. Forms send texts back as they are.
func (b *bench) harmless(page string) {
	b.T.Helper()
	b.hasNot(sentBack.ReplaceAllString(main(page), ""), "<script", "\x1b", "\u202e")
}

var sentBack = regexp.MustCompile(`(?s) value="[^"<>]*"`)
