package web_test

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/web"
)

// marked is in what only those who are known may see.
const marked = "marked-7f3a"

// things are what actions can be done to.
type things struct {
	worker                    string
	parked, waiting, archived string // ids of tasks
}

var digest = delayed.Func(func(string, ...int) {}, delayed.Name("mail.Digest"), delayed.Gather(delayed.GatherPolicy{
	Grace: time.Hour,
}))

// fill gives the queue tasks that wait, are archived and parked, a group, a periodic entry and a worker, which then
// leaves everything in Redis as it is: it has nothing to do, and seldom says that it is alive.
func (b *bench) fill() (x things) {
	b.T.Helper()
	fails := delayed.Func(func(string) error { return delayed.Archive(markedError{}) }, delayed.Name("mail.Fails"))
	w, _ := b.work(delayed.WorkerConfig{NoSweeper: true, HeartbeatLife: time.Hour}, digest, fails)
	x.worker = w.ID()
	ids := func(ref *delayed.Ref, err error) string {
		b.T.Helper()
		b.Must(err)
		return ref.ID()
	}
	x.parked = ids(b.q.Enqueue(bg, delayed.NewGoTask("mail.Forgotten", marked)))
	x.archived = ids(b.q.Delay(fails, marked))
	b.Must(b.q.Periodic().Set(bg, delayed.Entry{
		Name: "nightly", Spec: "0 3 * * *", Task: delayed.Call(fails, marked),
	}))
	b.Until("two tasks have run", func() bool {
		q, err := b.ins.Queue(bg, queueName)
		return err == nil && q.Parked == 1 && q.Archived == 1 && q.Pending == 0 && q.Active == 0
	})
	x.waiting = ids(b.q.With(delayed.In(24*time.Hour)).Delay(fails, marked))
	ids(b.q.With(delayed.Group(marked)).Delay(digest, "ann", 1))
	return x
}

type markedError struct{}

func (markedError) Error() string { return marked }

// forms are the fields of forms that do something to the things in Redis: a action finds what it needs in one of them.
func (x things) forms() (all []url.Values) {
	for _, name := range []string{queueName, "nightly"} {
		for id, in := range map[string]string{
			x.worker: "scheduled", x.waiting: "scheduled", x.parked: "parked", x.archived: "archived",
		} {
			list := url.Values{"queue": {queueName}, "state": {in}}
			all = append(all, url.Values{
				"queue": {queueName}, "name": {name}, "id": {id}, "state": {"scheduled"}, "key": {marked},
				"weight": {"7"}, "force": {"1"}, "function": {"mail.Digest"}, "to": {"reports"},
				"args": {`["x", 1]`}, "in": {"1h"}, "at": {"2099-01-01T00:00"}, "confirm": {queueName},
				"list": {list.Encode()}, "when": {"1h"}, "arg1": {`"x"`}, "arg2": {"[1]"},
			})
		}
	}
	return all
}

// content returns all keys of the dashboard's queues, as Redis dumps them.
func (b *bench) content() map[string]string {
	b.T.Helper()
	all := map[string]string{}
	prefix := strings.TrimSuffix(b.Name, queueName)
	keys, err := redis.Strings(b.Do("KEYS", prefix+"*"), nil)
	b.Must(err)
	for _, key := range keys {
		if strings.HasSuffix(key, "_wake") {
			continue // by which workers wake each other; they empty it when they like
		}
		dump, err := redis.String(b.Do("DUMP", key), nil)
		if errors.Is(err, redis.ErrNil) {
			continue // it has expired since
		}
		b.Must(err)
		all[key] = dump
	}
	return all
}

// changes returns the keys that differ.
func changes(before, after map[string]string) (keys []string) {
	for key := range maps.Keys(before) {
		if after[key] != before[key] {
			keys = append(keys, key)
		}
	}
	for key := range maps.Keys(after) {
		if _, ok := before[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// eachAction calls f with each action of each page.
func eachAction(f func(path, action string, role web.Role)) {
	routes := web.Routes()
	for _, path := range slices.Sorted(maps.Keys(routes)) {
		for _, action := range slices.Sorted(maps.Keys(routes[path])) {
			if action != "" {
				f(path, action, routes[path][action])
			}
		}
	}
}

// paths are the addresses that there are, and some that are not.
func paths() []string {
	all := slices.Sorted(maps.Keys(web.Routes()))
	return append(all,
		"login", "logout", "live", "assets/app.js", "assets/nothing", "assets/../login", "nothing", "queue/", "a/b/c",
		"api/v1/", "api/v1/queues", "api/v1/queues/mail", "api/v1/openapi.json", ".env", "%2e%2e/etc/passwd")
}

// TestFilled makes sure that the actions that others may not do would change something: if most of them cannot because
// the forms lack what they need, the tests that refuse them test nothing.
func TestFilled(t *testing.T) {
	t.Parallel()
	type result struct {
		name    string
		changed bool
	}
	var results []result
	eachAction(func(path, action string, _ web.Role) {
		b := newBench(t)
		forms := b.fill().forms()
		before := b.content()
		for _, form := range forms {
			form.Set("do", action)
			b.ask(web.Admin, "POST", path, form)
		}
		b.Must(b.h.Close()) // it waits for jobs
		results = append(results, result{path + " " + action, len(changes(before, b.content())) > 0})
	})
	var not []string
	for _, r := range results {
		if !r.changed {
			not = append(not, r.name)
		}
	}
	if len(not) > len(results)/3 {
		t.Errorf("of %d actions these changed nothing: %s: give fields to forms", len(results), strings.Join(not, ", "))
	}
	t.Logf("%d actions; these changed nothing: %s", len(results), strings.Join(not, ", "))
}
