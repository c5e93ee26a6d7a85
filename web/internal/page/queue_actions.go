package page

import (
	"strconv"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web/internal/site"
)

func weighQueue(s *shared, q *site.Request) (outcome, error) {
	name, given := q.Args.Get("name"), q.Args.Get("weight")
	if err := s.CheckName(name); err != nil {
		return outcome{}, err
	}
	weight, err := strconv.Atoi(given)
	if given == "" {
		weight, err = 0, nil
	}
	if err != nil || weight < 0 || weight > site.MaxWeight {
		return outcome{}, site.Bad("expected a weight from 1 to 1000, or none for that of the workers' " +
			"configuration, found " + strconv.Quote(given))
	}
	text := "Queue " + name + " has weight " + strconv.Itoa(weight) + "."
	if weight == 0 {
		text = "Queue " + name + " has the weight that each worker is configured with."
	}
	return outcome{Text: text}, q.Ins.SetWeight(q.Ctx, name, weight)
}

// emptyQueue deletes all tasks of one state, as a job.
func emptyQueue(s *shared, q *site.Request) (outcome, error) {
	queue, err := s.queueOf(q)
	if err != nil {
		return outcome{}, err
	}
	given := q.Args.Get("state")
	st, ok := site.StateNamed(given)
	if !ok || st == state.Active {
		return outcome{}, site.Bad("expected a state of tasks that can be deleted, found " + strconv.Quote(given))
	}
	return s.startJob(q, site.Order{Queue: queue.Name, State: st, What: "Delete", Action: inspect.Delete()})
}

func deleteQueue(s *shared, q *site.Request) (outcome, error) {
	name := q.Args.Get("name")
	if err := s.CheckName(name); err != nil {
		return outcome{}, err
	}
	return outcome{To: "./", Text: "Queue " + name + " is deleted."},
		q.Ins.DeleteQueue(q.Ctx, name, q.Args.Get("force") != "")
}
