package page

import (
	"slices"
	"strconv"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web/internal/auth"
	"github.com/godelayed/delayed/web/internal/site"
)

// queueActions are what one can do to a queue.
var queueActions = formActions{
	"pause":   {auth.Operator, pauseQueue},
	"resume":  {auth.Operator, resumeQueue},
	"weight":  {auth.Operator, weighQueue},
	"restart": {auth.Operator, restartQueue},
	"empty":   {auth.Admin, emptyQueue},
	"delete":  {auth.Admin, deleteQueue},
}

func pauseQueue(s *shared, q *site.Request) (outcome, error) {
	queue, err := s.queueOf(q)
	if err == nil {
		err = q.Ins.Pause(q.Ctx, queue.Name)
	}
	return outcome{Text: "Queue " + queue.Name + " is paused: what runs goes on, and nothing else begins."}, err
}

func resumeQueue(s *shared, q *site.Request) (outcome, error) {
	queue, err := s.queueOf(q)
	if err == nil {
		err = q.Ins.Resume(q.Ctx, queue.Name)
	}
	return outcome{Text: "Queue " + queue.Name + " goes on."}, err
}

func weighQueue(s *shared, q *site.Request) (outcome, error) {
	queue, err := s.queueOf(q)
	if err != nil {
		return outcome{}, err
	}
	given := q.Args.Get("weight")
	weight, err := strconv.Atoi(given)
	if given == "" {
		weight, err = 0, nil
	}
	if err != nil || weight < 0 || weight > site.MaxWeight {
		return outcome{}, site.Bad("expected a weight from 1 to 1000, or none for that of the workers' " +
			"configuration, found " + strconv.Quote(given))
	}
	text := "Queue " + queue.Name + " has weight " + strconv.Itoa(weight) + "."
	if weight == 0 {
		text = "Queue " + queue.Name + " has the weight that each worker is configured with."
	}
	return outcome{Text: text}, q.Ins.SetWeight(q.Ctx, queue.Name, weight)
}

func restartQueue(s *shared, q *site.Request) (outcome, error) {
	queue, err := s.queueOf(q)
	if err == nil {
		err = q.Ins.Restart(q.Ctx, queue.Name)
	}
	return outcome{Text: "The workers of queue " + queue.Name +
		" finish what they run and stop; their supervisors start them again."}, err
}

// emptyQueue deletes all tasks of one state, as a job.
func emptyQueue(s *shared, q *site.Request) (outcome, error) {
	queue, err := s.queueOf(q)
	if err != nil {
		return outcome{}, err
	}
	given := q.Args.Get("state")
	at := slices.IndexFunc(inspect.States, func(st state.Task) bool { return st.String() == given })
	if at < 0 || inspect.States[at] == state.Active {
		return outcome{}, site.Bad("expected a state of tasks that can be deleted, found " + strconv.Quote(given))
	}
	return s.startJob(q, site.Order{
		Queue: queue.Name, State: inspect.States[at], What: "Delete", Action: inspect.Delete(),
	})
}

func deleteQueue(s *shared, q *site.Request) (outcome, error) {
	queue, err := s.queueOf(q)
	if err != nil {
		return outcome{}, err
	}
	if err := q.Ins.DeleteQueue(q.Ctx, queue.Name, q.Args.Get("force") != ""); err != nil {
		return outcome{}, err
	}
	return outcome{To: "./", Text: "Queue " + queue.Name + " is deleted."}, nil
}
