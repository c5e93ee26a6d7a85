package redisstore

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/godelayed/delayed/internal/redistest"
)

var bg = context.Background()

// envelopes are n tasks with ids that begin with id0 and messages that begin with message0.
func envelopes(n int) (batch []Envelope) {
	for i := range n {
		batch = append(batch, Envelope{ID: fmt.Sprintf("id%d", i), Message: fmt.Appendf(nil, "message%d", i)})
	}
	return batch
}

// messages are those of envelopes(n).
func messages(n int) (list redistest.List) {
	for _, e := range envelopes(n) {
		list = append(list, string(e.Message))
	}
	return list
}

var enqueueCases = storeTable{script: "enqueue", refused: true, cases: []storeCase{
	{
		name: "one",
		do:   func(s *Store) (any, error) { return nil, s.Enqueue(bg, envelopes(1)) },
		want: redistest.State{"": messages(1), "_noti": ones(1)},
	},
	{
		name: "behind others, with one more notification each",
		seed: redistest.State{"": redistest.List{"old"}},
		do:   func(s *Store) (any, error) { return nil, s.Enqueue(bg, envelopes(2)) },
		want: redistest.State{"": append(redistest.List{"old"}, messages(2)...), "_noti": ones(2)},
	},
	{
		name: "equal and binary messages",
		do: func(s *Store) (any, error) {
			same := Envelope{Message: []byte("\x00\xff\r\n'")}
			return nil, s.Enqueue(bg, []Envelope{same, same, {}})
		},
		want: redistest.State{"": redistest.List{"\x00\xff\r\n'", "\x00\xff\r\n'", ""}, "_noti": ones(3)},
	},
	{
		name: "as many as a call may have",
		do:   func(s *Store) (any, error) { return nil, s.Enqueue(bg, envelopes(MaxBatchTasks)) },
		want: redistest.State{"": messages(MaxBatchTasks), "_noti": ones(MaxBatchTasks)},
	},
}}

// TestEnqueueOnKeysOfAnotherType: no task is enqueued without its notification.
func TestEnqueueOnKeysOfAnotherType(t *testing.T) {
	server := redistest.Shared(t)
	src := dialled(t, server.URL())
	for _, suffix := range []string{"", "_noti"} {
		s := NewStore(src, "", redistest.Name(t))
		server.Do(t, "SET", s.Name+suffix, "another type")
		for _, n := range []int{1, 2} {
			if err := s.Enqueue(bg, envelopes(n)); err == nil || errors.Is(err, ErrUnknown) {
				t.Errorf("N%s is of another type, %d tasks: %v", suffix, n, err)
			}
		}
		if state := redistest.Dump(t, server.Dial(t), s.Name); suffix == "_noti" && len(state) != 1 {
			t.Errorf("there is a task without its notification: %v", state)
		}
	}
}

// scheduled returns what a queue holds with n tasks that are due at a time.
func scheduled(n int, due int64) (redistest.Zset, redistest.Hash) {
	set, tasks := redistest.Zset{}, redistest.Hash{}
	for _, e := range envelopes(n) {
		set[e.ID], tasks[e.ID] = due, string(e.Message)
	}
	return set, tasks
}

var manySet, manyTasks = scheduled(MaxBatchTasks, later)

var scheduleCases = storeTable{script: "schedule", refused: true, cases: []storeCase{
	{
		name: "in, by the clock of Redis",
		do:   func(s *Store) (any, error) { return nil, s.Schedule(bg, envelopes(1), 5000, true) },
		want: redistest.State{
			"_scheduled": redistest.Zset{"id0": fromNowBase + 5000}, "_tasks": redistest.Hash{"id0": "message0"},
			"_wake": ones(1),
		},
	},
	{
		name: "at",
		do:   func(s *Store) (any, error) { return nil, s.Schedule(bg, envelopes(1), later, false) },
		want: redistest.State{
			"_scheduled": redistest.Zset{"id0": later}, "_tasks": redistest.Hash{"id0": "message0"}, "_wake": ones(1),
		},
	},
	{
		name: "at a time that is over",
		do:   func(s *Store) (any, error) { return nil, s.Schedule(bg, envelopes(1), past, false) },
		want: redistest.State{
			"_scheduled": redistest.Zset{"id0": past}, "_tasks": redistest.Hash{"id0": "message0"}, "_wake": ones(1),
		},
	},
	{
		name: "earlier than all others: wakes a mover",
		seed: redistest.State{"_scheduled": redistest.Zset{"x": later + 1}, "_tasks": redistest.Hash{"x": "m"}},
		do:   func(s *Store) (any, error) { return nil, s.Schedule(bg, envelopes(1), later, false) },
		want: redistest.State{
			"_scheduled": redistest.Zset{"x": later + 1, "id0": later},
			"_tasks":     redistest.Hash{"x": "m", "id0": "message0"}, "_wake": ones(1),
		},
	},
	{
		name: "earlier than a round time",
		seed: redistest.State{"_scheduled": redistest.Zset{"x": round}, "_tasks": redistest.Hash{"x": "m"}},
		do:   func(s *Store) (any, error) { return nil, s.Schedule(bg, envelopes(1), round-1, false) },
		want: redistest.State{
			"_scheduled": redistest.Zset{"x": round, "id0": round - 1},
			"_tasks":     redistest.Hash{"x": "m", "id0": "message0"}, "_wake": ones(1),
		},
	},
	{
		name: "later than a round time",
		seed: redistest.State{"_scheduled": redistest.Zset{"x": round}, "_tasks": redistest.Hash{"x": "m"}},
		do:   func(s *Store) (any, error) { return nil, s.Schedule(bg, envelopes(1), later, false) },
		want: redistest.State{
			"_scheduled": redistest.Zset{"x": round, "id0": later},
			"_tasks":     redistest.Hash{"x": "m", "id0": "message0"},
		},
	},
	{
		name: "earlier, but the mover has been called",
		seed: redistest.State{
			"_scheduled": redistest.Zset{"x": later + 1}, "_tasks": redistest.Hash{"x": "m"},
			"_wake": ones(1),
		},
		do: func(s *Store) (any, error) { return nil, s.Schedule(bg, envelopes(1), later, false) },
		want: redistest.State{
			"_scheduled": redistest.Zset{"x": later + 1, "id0": later},
			"_tasks":     redistest.Hash{"x": "m", "id0": "message0"}, "_wake": ones(1),
		},
	},
	{
		name: "as late as the first: wakes nobody",
		seed: redistest.State{"_scheduled": redistest.Zset{"x": later}, "_tasks": redistest.Hash{"x": "m"}},
		do:   func(s *Store) (any, error) { return nil, s.Schedule(bg, envelopes(1), later, false) },
		want: redistest.State{
			"_scheduled": redistest.Zset{"x": later, "id0": later},
			"_tasks":     redistest.Hash{"x": "m", "id0": "message0"},
		},
	},
	{
		name: "as many as a call may have",
		do:   func(s *Store) (any, error) { return nil, s.Schedule(bg, envelopes(MaxBatchTasks), later, false) },
		want: redistest.State{"_scheduled": manySet, "_tasks": manyTasks, "_wake": ones(1)},
	},
	{
		name: "id of a scheduled task: all or none",
		seed: redistest.State{"_scheduled": redistest.Zset{"id1": later}, "_tasks": redistest.Hash{"id1": "m"}},
		do:   scheduleTaken("id1"),
		err:  errTaken,
	},
	{
		name: "id of a task in another set",
		seed: redistest.State{"_archived": redistest.Zset{"id2": later}, "_tasks": redistest.Hash{"id2": "m"}},
		do:   scheduleTaken("id2"),
		err:  errTaken,
	},
	{
		name: "an id twice in one call",
		do: func(s *Store) (any, error) {
			tasks := envelopes(3)
			tasks[2].ID = tasks[0].ID
			return nil, s.Schedule(bg, tasks, later, false)
		},
		err: ErrDuplicate,
	},
}}

var errTaken = errors.New("the id that is taken is named")

// scheduleTaken schedules three tasks, of which one has an id that is taken, and returns errTaken if the error names
// exactly that one.
func scheduleTaken(id string) func(s *Store) (any, error) {
	return func(s *Store) (any, error) {
		err := s.Schedule(bg, envelopes(3), past, false)
		var taken *TakenError
		if errors.As(err, &taken) && taken.ID == id {
			return nil, fmt.Errorf("%w: %w", errTaken, err)
		}
		return nil, err
	}
}

// TestLength reads the number of pending tasks.
func TestLength(t *testing.T) {
	server := redistest.Shared(t)
	s := NewStore(dialled(t, server.URL()), "", redistest.Name(t))
	for _, want := range []int{0, 3} {
		if n, err := s.Length(bg); n != want || err != nil {
			t.Errorf("length is %d, %v, expected %d", n, err, want)
		}
		if err := s.Enqueue(bg, envelopes(3)); err != nil {
			t.Fatal(err)
		}
	}
}
