package web

import (
	"strconv"

	"github.com/godelayed/delayed/inspect"
)

// queueDeeds are what one can do to a queue.
var queueDeeds = map[string]deed{
	"pause":   {Operator, pauseQueue},
	"resume":  {Operator, resumeQueue},
	"weight":  {Operator, weighQueue},
	"restart": {Operator, restartQueue},
	"delete":  {Admin, deleteQueue},
}

// queueName returns the name in a form, which must be that of a queue that there is: a typo makes none.
func queueName(q *request) (string, error) {
	name := q.args.Get("name")
	if _, err := q.ins.Queue(q.ctx, name); err != nil {
		return "", err
	}
	return name, nil
}

func pauseQueue(_ *site, q *request) (outcome, error) {
	name, err := queueName(q)
	if err == nil {
		err = q.ins.Pause(q.ctx, name)
	}
	return outcome{Text: "Queue " + inspect.Printable(name) + " is paused: what runs goes on, and nothing else begins."}, err
}

func resumeQueue(_ *site, q *request) (outcome, error) {
	name, err := queueName(q)
	if err == nil {
		err = q.ins.Resume(q.ctx, name)
	}
	return outcome{Text: "Queue " + inspect.Printable(name) + " goes on."}, err
}

func weighQueue(_ *site, q *request) (outcome, error) {
	name, err := queueName(q)
	if err != nil {
		return outcome{}, err
	}
	given := q.args.Get("weight")
	weight, err := strconv.Atoi(given)
	if given == "" {
		weight, err = 0, nil
	}
	if err != nil || weight < 0 || weight > maxWeight {
		return outcome{}, bad("expected a weight from 1 to 1000, or none for that of the workers' configuration, found " +
			strconv.Quote(given))
	}
	text := "Queue " + inspect.Printable(name) + " has weight " + strconv.Itoa(weight) + "."
	if weight == 0 {
		text = "Queue " + inspect.Printable(name) + " has the weight that each worker is configured with."
	}
	return outcome{Text: text}, q.ins.SetWeight(q.ctx, name, weight)
}

// maxWeight is the largest weight that Inspector.SetWeight takes.
const maxWeight = 1000

func restartQueue(_ *site, q *request) (outcome, error) {
	name, err := queueName(q)
	if err == nil {
		err = q.ins.Restart(q.ctx, name)
	}
	return outcome{Text: "The workers of queue " + inspect.Printable(name) +
		" finish what they run and stop; their supervisors start them again."}, err
}

func deleteQueue(_ *site, q *request) (outcome, error) {
	name, err := queueName(q)
	if err != nil {
		return outcome{}, err
	}
	if err := q.ins.DeleteQueue(q.ctx, name, q.args.Get("force") != ""); err != nil {
		return outcome{}, err
	}
	return outcome{To: "./", Text: "Queue " + inspect.Printable(name) + " is deleted."}, nil
}
