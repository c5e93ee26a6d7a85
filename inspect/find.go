package inspect

import (
	"context"
	"fmt"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/state"
)

// Task finds the task with an id, with everything that is known of it. Scheduled, retrying, parked, archived and
// completed tasks are found at once. For any other id it reads the aggregating, pending and active tasks one after the
// other, which takes about a second for each million. If there is none, the error wraps ErrNotFound.
func (ins *Inspector) Task(ctx context.Context, queue, id string) (Task, error) {
	s, err := ins.store(ctx, queue)
	if err != nil {
		return Task{}, err
	}
	if id == "" {
		return Task{}, notFound(queue, id)
	}
	filed, isFiled, found, err := ins.look(ctx, s, id)
	if err != nil || isFiled {
		return filed, err
	}
	// Search in the direction in which tasks move, so that one that moves meanwhile is found: only then the sets again.
	for _, in := range notFiled {
		if in == state.Pending {
			t, ok, err := ins.seek(ctx, s, id)
			if err != nil || ok {
				return t, err
			}
			continue
		}
		for t, err := range ins.All(ctx, queue, Query{
			State: in, Filter: Filter{ID: id}, Limit: mostLimit,
		}) {
			if err != nil {
				return Task{}, err
			}
			if t.ID == id {
				t.progress(&found)
				return t, nil
			}
		}
	}
	if filed, isFiled, _, err = ins.look(ctx, s, id); err != nil || isFiled {
		return filed, err
	}
	return Task{}, notFound(queue, id)
}

// seek finds a pending task. Redis looks through the messages, from the newest on: then those that producers add
// meanwhile are no trouble, and one that becomes a suspect is met among these.
func (ins *Inspector) seek(ctx context.Context, s *redisstore.Store, id string) (t Task, ok bool, err error) {
	for _, list := range []*redisstore.Store{s, s.Suspects()} {
		for from, looked := 0, 1; looked > 0; from += looked {
			var found []redisstore.Stored
			if found, looked, err = list.SeekPending(ctx, from, id); err != nil {
				return Task{}, false, err
			}
			for _, m := range found {
				if t := ins.newTask(s.Name, state.Pending, m, nil); t.ID == id {
					revoked, err := s.AreRevoked(ctx, []string{id})
					return t, err == nil && !revoked[0], err
				}
			}
		}
	}
	return Task{}, false, nil
}

func notFound(queue, id string) error {
	if id == "" { // as tasks without one have
		return fmt.Errorf("%w: the id is empty", ErrNotFound)
	}
	return fmt.Errorf("%w: queue %q holds no task %q: it has ended and nothing was kept of it, or it is in "+
		"another queue", ErrNotFound, queue, id)
}

// notFiled are the states of tasks that no set holds, in the order in which they go through them.
var notFiled = []state.Task{state.Aggregating, state.Pending, state.Active}

// look looks up a task, and describes it if it is in a set.
func (ins *Inspector) look(
	ctx context.Context, s *redisstore.Store, id string,
) (t Task, filed bool, found redisstore.Seen, err error) {
	if found, err = s.Look(ctx, id, true); err != nil {
		return t, false, found, err
	}
	name, due, info := found.Place()
	for _, in := range States {
		if in.String() != name || in == state.Active {
			continue
		}
		m := found.Message
		if in == state.Completed {
			m = redisstore.Stored{}
		}
		t = ins.newTask(s.Name, in, m, info)
		t.ID, t.Due = id, due
		t.completed()
		return t, true, found, nil
	}
	return t, false, found, nil
}

// progress takes over the progress that an active task has reported.
func (t *Task) progress(found *redisstore.Seen) {
	if t.State == state.Active && found.Result != nil && found.Completed.IsZero() {
		var none redisstore.Stored
		report := Task{}
		report.know(found.Result, &none)
		t.Done, t.Total, t.Note, t.At = report.Done, report.Total, report.Note, report.At
	}
}

// Find returns the tasks with an id in all queues, in the order of the queues' names, or an error that wraps
// ErrNotFound.
func (ins *Inspector) Find(ctx context.Context, id string) ([]Task, error) {
	stores, err := ins.stores(ctx, nil)
	if err != nil {
		return nil, err
	}
	var tasks []Task
	for _, s := range stores {
		t, err := ins.Task(ctx, s.Name, id)
		if err == nil {
			tasks = append(tasks, t)
		} else if !isNotFound(err) {
			return nil, err
		}
	}
	if len(tasks) == 0 {
		return nil, fmt.Errorf("%w: no queue holds a task %q", ErrNotFound, id)
	}
	return tasks, nil
}
