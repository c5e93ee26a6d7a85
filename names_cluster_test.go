package delayed_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/rediscluster"
	"github.com/godelayed/delayed/state"
)

// TestNamesInACluster: a name whose keys would be in several slots is refused, and the error proposes one that works.
func TestNamesInACluster(t *testing.T) {
	cluster, err := rediscluster.Dial("redis://127.0.0.1:1") // never connects
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	for _, c := range []struct{ prefix, name, want string }{
		{"", "mail", `name it "{mail}"`},
		{"", "{}mail", `name it "{mail}"`},
		{"", "mail}", `name it "{mail}"`},
		{"", "{mail", `name it "{mail}"`},
		{"", "{}", "choose another prefix"},
		{
			"app:", "mail",
			`behind the key prefix "app:" has no tag: all keys of a queue are in one slot of a Redis Cluster ` +
				`because of a {tag} in its name: name it "{mail}"`,
		},
		{"{}", "{mail}", "choose another prefix"},
		{"", "{mail}", ""},
		{"", "{mail}:low", ""},
		{"", "app{mail}", ""},
		{"app:", "{mail}", ""},
		{"{app}:", "mail", ""},
	} {
		rdb := cluster.WithPrefix(c.prefix)
		for where, open := range map[string]func() error{
			"OpenQueue": func() error {
				_, err := delayed.OpenQueue(rdb, delayed.QueueConfig{Name: c.name})
				return err
			},
			"NewWorker": func() error {
				_, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Strict{c.name}})
				return err
			},
			"NewSweeper": func() error {
				_, err := delayed.NewSweeper(rdb, delayed.SweeperConfig{Queues: []string{c.name}})
				return err
			},
			"NewScheduler": func() error {
				_, err := delayed.NewScheduler(rdb, delayed.SchedulerConfig{Queue: c.name})
				return err
			},
		} {
			err := open()
			if c.want == "" && err != nil || c.want != "" &&
				(err == nil || !strings.HasPrefix(err.Error(), "delayed: ") || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %q behind %q: found %v, expected %q", where, c.name, c.prefix, err, c.want)
			}
		}
	}
}

// TestTextsOfHandles: how queues and tasks look in a log.
func TestTextsOfHandles(t *testing.T) {
	rdb, err := delayed.Dial("redis://localhost:1")
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	q := delayed.NewQueue("mail", rdb)
	for _, c := range []struct {
		value any
		want  string
	}{
		{q, "queue mail"},
		{delayed.NewQueue("mail", rdb.WithPrefix("app:")).With(delayed.Header("token", "hunter2")), "queue app:mail"},
		{(*delayed.Queue)(nil), "no queue"},
		{&delayed.Queue{}, "no queue"},
		{delayed.Call(wrongText, "hunter2"), "task github.com/godelayed/delayed_test.wrongText (1 argument)"},
		{delayed.Call(wrongList, "hunter2", 1, 2), "task github.com/godelayed/delayed_test.wrongList (3 arguments)"},
		{delayed.NewGoTask("app/mail.Send"), "task app/mail.Send (0 arguments)"},
		{
			delayed.NewPyTask("mail:send", []any{"hunter2"}, map[string]any{"key": "hunter2"}),
			"task mail:send (2 arguments)",
		},
		{delayed.Call(wrongText, 1), "task that was not built"},
		{&delayed.Task{}, "task that was not built"},
		{(*delayed.Task)(nil), "no task"},
		{(*delayed.Ref)(nil), "no task"},
		{q.Ref("x"), "mail/x"},
		{state.Worker(9), "state.Worker(9)"},
		{state.Worker(-1), "state.Worker(-1)"},
		{state.Task(99), "state.Task(99)"},
		{event.Kind(99), "unknown event"},
		{delayed.Conflict(9), "Conflict(9)"},
		{delayed.Overlap(9), "Overlap(9)"},
	} {
		if got := fmt.Sprint(c.value); got != c.want {
			t.Errorf("found %q, expected %q", got, c.want)
		}
		if _, ok := c.value.(fmt.GoStringer); ok && fmt.Sprintf("%#v", c.value) != c.want {
			t.Errorf("found %#v, expected %q", c.value, c.want)
		}
	}
}
