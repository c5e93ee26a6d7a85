package inspect_test

import (
	"slices"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestQueuesAreFound has producers and workers make queues known, without tasks in them.
func TestQueuesAreFound(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work(welcome) // of queue mail, where nothing was enqueued
	legacy, err := delayed.OpenQueue("reports", b.rdb, delayed.QueueConfig{})
	b.Must(err)
	_, err = legacy.DelayMany(bg, delayed.Call(welcome, 1, "en"))
	b.Must(err)
	b.Do("DEL", b.Name[:len(b.Name)-len(queueName)]+"reports") // its tasks are gone, its name is known
	var queues []inspect.Queue
	b.Until("both are known", func() bool {
		queues, err = b.ins.Queues(bg)
		b.Must(err)
		return len(queues) == 2
	})
	if queues[0].Name != "mail" || queues[1].Name != "reports" || queues[0].Legacy || queues[1].Legacy {
		t.Errorf("found %+v", queues)
	}
	if names, err := b.ins.Names(bg); err != nil || !slices.Equal(names, []string{"mail", "reports"}) {
		t.Errorf("names %v, %v", names, err)
	}
	other, err := inspect.New(b.rdb.WithPrefix("other:"), inspect.Config{})
	b.Must(err)
	if names, err := other.Names(bg); err != nil || len(names) != 0 {
		t.Errorf("behind another prefix %v, %v", names, err)
	}
	if queues, err := other.Queues(bg); err != nil || len(queues) != 0 {
		t.Errorf("behind another prefix %+v, %v", queues, err)
	}
}

// TestLegacyQueuesAreMarked opens a queue as a legacy one after it was known as another.
func TestLegacyQueuesAreMarked(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	ins, err := inspect.New(rdb, inspect.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, legacy := range []bool{false, true, false} {
		handle := rdb
		if legacy {
			handle = rdb.WithLegacy()
		}
		q, err := delayed.OpenQueue("mail", handle, delayed.QueueConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := q.Delay(welcome, 1, "en"); err != nil {
			t.Fatal(err)
		}
	}
	queues, err := ins.Queues(bg)
	if err != nil || len(queues) != 1 || !queues[0].Legacy || queues[0].Pending != 3 {
		t.Errorf("found %+v, %v: expected one legacy queue", queues, err)
	}
	if _, err := delayed.OpenQueue("delayed_queues", rdb, delayed.QueueConfig{}); err == nil {
		t.Error("a queue may be named like the registry")
	}
}

// A queue that has nothing but a periodic entry is known too.
func TestQueuesOfPeriodicEntriesAreKnown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Must(b.q.Periodic().Set(bg, delayed.Entry{Name: "e", Spec: "@daily", Task: delayed.Call(welcome, 1, "x")}))
	names, err := b.ins.Names(bg)
	b.Must(err)
	if len(names) != 1 || names[0] != queueName {
		t.Errorf("found the queues %q", names)
	}
}
