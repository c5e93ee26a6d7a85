package redisstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/redistest"
)

// TestManyQueuesOfOneSlot looks at more queues than one script does: each gets the answer that is its own.
func TestManyQueuesOfOneSlot(t *testing.T) {
	server := redistest.Start(t)
	src := newMeter(dialled(t, server.URL()), func() float64 { return 0 })
	stores := make([]*Store, 2*slotPage+1)
	for i := range stores {
		stores[i] = NewStore(src, "", fmt.Sprint("q", i))
	}
	const busy, unknown = slotPage + 7, 2 * slotPage // a queue of the second page, and the last one
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range stores {
		if i != unknown {
			_, err := s.Register(bg, "w", time.Hour, "v")
			must(err)
		}
	}
	must(stores[busy].Enqueue(bg, envelopes(3)))
	conn, err := src.Conn(bg, "q0")
	must(err)
	defer conn.Close()
	l := &Link{conn: conn}

	pulses, now, err := Beat(bg, l, stores, "w", time.Hour, true, true)
	must(err)
	todos, err := Check(bg, src, stores)
	must(err)
	queues, err := Survey(bg, l, stores, "me", time.Hour)
	must(err)
	if len(pulses) != len(stores) || len(todos) != len(stores) || len(queues) != len(stores) {
		t.Fatalf("found %d, %d and %d of %d queues", len(pulses), len(todos), len(queues), len(stores))
	}
	if d := time.Since(now); d < -time.Minute || d > time.Minute {
		t.Errorf("the time is %v", now)
	}
	for i := range stores {
		pending := 0
		if i == busy {
			pending = 3
		}
		if alive := i != unknown; pulses[i].Alive != alive || todos[i].Pending != pending ||
			queues[i].Pending != pending || !queues[i].Locked || (len(queues[i].Workers) == 1) != alive {
			t.Errorf("queue %d: %+v, %+v, %+v", i, pulses[i], todos[i], queues[i])
		}
	}
	for _, name := range []string{"beat", "check", "survey"} {
		if src.calls[name] != 3 {
			t.Errorf("%s: %d scripts, expected 3", name, src.calls[name])
		}
	}
}

// TestManyQueuesTogether sends the calls for more queues than are sent at once. Redis does not know the scripts at
// first, and a key of one queue is of another type: each queue gets its own answer all the same.
func TestManyQueuesTogether(t *testing.T) {
	server := redistest.Start(t)
	src := dialled(t, server.URL())
	stores, values := make([]*Store, 2*sentTogether+1), make([]string, 2*sentTogether+1)
	for i := range stores {
		stores[i], values[i] = NewStore(src, "", fmt.Sprint("q", i)), fmt.Sprint("v", i)
	}
	const claims, odd = sentTogether + 7, 3
	server.Do(t, "HSET", stores[claims].keys.processing+"w", "token", "m")
	server.Do(t, "SET", stores[odd].keys.workers, "another type")
	before := server.CommandStats(t)
	for i, a := range RegisterEach(bg, stores, "w", time.Hour, values) {
		want := []string{}
		if i == claims {
			want = []string{"token"}
		}
		if IsWrongType(a.Err) != (i == odd) || i != odd && (a.Err != nil || !slices.Equal(a.Value, want)) {
			t.Errorf("register on queue %d: %q, %v", i, a.Value, a.Err)
		}
		value := fmt.Sprintf("%s", server.Do(t, "GET", stores[i].keys.heartbeat+"w"))
		if i != odd && value != values[i] {
			t.Errorf("the heartbeat of queue %d has the value %s, expected %s", i, value, values[i])
		}
	}
	if n := server.CommandStats(t).Since(before)["sadd"]; n != int64(len(stores)) && n != int64(len(stores)-1) {
		t.Errorf("%d registrations of %d queues", n, len(stores))
	}
	for i, a := range PublishEach(bg, stores, "w"+StatusMark, slices.Repeat([][]byte{[]byte("s")}, len(stores))) {
		if a.Err != nil || a.Value != (i != odd) {
			t.Errorf("status on queue %d: %v, %v", i, a.Value, a.Err)
		}
	}
	for i, a := range UnregisterEach(bg, stores, "w") {
		if IsWrongType(a.Err) != (i == odd) || i != odd && (a.Err != nil || a.Value != (i != claims)) {
			t.Errorf("unregister from queue %d: %v, %v", i, a.Value, a.Err)
		}
	}
	server.Stop(t)
	for i, a := range UnregisterEach(bg, stores, "w") {
		if a.Err == nil {
			t.Errorf("unregister from queue %d of a server that is gone: no error", i)
		}
	}
}

// TestSurveyOfManyWorkers finds all workers of a queue that has more than one reply may hold, and those of its
// neighbors; so does an inspector.
func TestSurveyOfManyWorkers(t *testing.T) {
	server := redistest.Start(t)
	src := dialled(t, server.URL())
	stores := []*Store{NewStore(src, "", "few"), NewStore(src, "", "many"), NewStore(src, "", "three")}
	want := [][]string{{"a"}, nil, {"b", "c", "d"}}
	for i := range 2*surveyedWorkers + 5 {
		want[1] = append(want[1], fmt.Sprintf("w%05d", i))
	}
	conn, err := src.Conn(bg, "few")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i, s := range stores {
		for _, w := range want[i] {
			if err := conn.Send("SADD", s.keys.workers, w); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := conn.Do(""); err != nil {
		t.Fatal(err)
	}
	queues, err := Survey(bg, &Link{conn: conn}, stores, "me", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	found, err := WorkersOf(bg, stores)
	if err != nil {
		t.Fatal(err)
	}
	for i := range queues {
		if slices.Sort(found[i]); !slices.Equal(found[i], want[i]) {
			t.Errorf("queue %d: an inspector finds %d workers, expected %d", i, len(found[i]), len(want[i]))
		}
		slices.Sort(queues[i].Workers)
		if !slices.Equal(queues[i].Workers, want[i]) || !queues[i].Locked {
			t.Errorf("queue %d: %d workers, expected %d; locked: %v", i, len(queues[i].Workers), len(want[i]),
				queues[i].Locked)
		}
	}
}
