package web

import (
	"slices"
	"strconv"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// queueDeeds are what one can do to a queue.
var queueDeeds = map[string]deed{
	"pause":   {Operator, pauseQueue},
	"resume":  {Operator, resumeQueue},
	"weight":  {Operator, weighQueue},
	"restart": {Operator, restartQueue},
	"empty":   {Admin, emptyQueue},
	"delete":  {Admin, deleteQueue},
}

func pauseQueue(s *site, q *request) (outcome, error) {
	queue, err := s.queueOf(q)
	if err == nil {
		err = q.ins.Pause(q.ctx, queue.Name)
	}
	return outcome{Text: "Queue " + queue.Name + " is paused: what runs goes on, and nothing else begins."}, err
}

func resumeQueue(s *site, q *request) (outcome, error) {
	queue, err := s.queueOf(q)
	if err == nil {
		err = q.ins.Resume(q.ctx, queue.Name)
	}
	return outcome{Text: "Queue " + queue.Name + " goes on."}, err
}

func weighQueue(s *site, q *request) (outcome, error) {
	queue, err := s.queueOf(q)
	if err != nil {
		return outcome{}, err
	}
	given := q.args.Get("weight")
	weight, err := strconv.Atoi(given)
	if given == "" {
		weight, err = 0, nil
	}
	if err != nil || weight < 0 || weight > maxWeight {
		return outcome{}, bad("expected a weight from 1 to 1000, or none for that of the workers' " +
			"configuration, found " + strconv.Quote(given))
	}
	text := "Queue " + queue.Name + " has weight " + strconv.Itoa(weight) + "."
	if weight == 0 {
		text = "Queue " + queue.Name + " has the weight that each worker is configured with."
	}
	return outcome{Text: text}, q.ins.SetWeight(q.ctx, queue.Name, weight)
}

// maxWeight is the largest weight that Inspector.SetWeight takes.
const maxWeight = 1000

func restartQueue(s *site, q *request) (outcome, error) {
	queue, err := s.queueOf(q)
	if err == nil {
		err = q.ins.Restart(q.ctx, queue.Name)
	}
	return outcome{Text: "The workers of queue " + queue.Name +
		" finish what they run and stop; their supervisors start them again."}, err
}

// emptyQueue deletes all tasks of one state, as a job.
func emptyQueue(s *site, q *request) (outcome, error) {
	queue, err := s.queueOf(q)
	if err != nil {
		return outcome{}, err
	}
	given := q.args.Get("state")
	at := slices.IndexFunc(inspect.States, func(st state.Task) bool { return st.String() == given })
	if at < 0 || inspect.States[at] == state.Active {
		return outcome{}, bad("expected a state of tasks that can be deleted, found " + strconv.Quote(given))
	}
	return s.startJob(q, order{
		Queue: queue.Name, State: inspect.States[at], What: "Delete", Action: inspect.Delete(),
	})
}

func deleteQueue(s *site, q *request) (outcome, error) {
	queue, err := s.queueOf(q)
	if err != nil {
		return outcome{}, err
	}
	if err := q.ins.DeleteQueue(q.ctx, queue.Name, q.args.Get("force") != ""); err != nil {
		return outcome{}, err
	}
	return outcome{To: "./", Text: "Queue " + queue.Name + " is deleted."}, nil
}
