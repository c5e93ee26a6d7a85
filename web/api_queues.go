package web

import (
	"strconv"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
)

var (
	daysParam  = param{Name: "days", Kind: "number", Least: 1, Most: 90, Usual: "10", Text: "how many days"}
	forceParam = param{Name: "force", Kind: "flag", Text: "also with the tasks and entries that it holds"}
	perParam   = param{
		Name: "per", Kind: "text", Usual: "minute", Names: []string{"second", "minute", "day"}, Text: "how finely",
	}
	lastParam = param{
		Name: "last", Kind: "duration", Text: "how far back, such as 2h or 7d; an hour of minutes if it is not " +
			"given, a " +
			"minute of seconds, or 14 days",
	}
	functionParam = param{
		Name: "function", Kind: "text", Text: "only of this function: its path or the end of it, such as mail.Welcome",
	}
	targetParam = param{
		Name: "target", Kind: "duration", Usual: "1m", Text: "how long the last pending task may wait at most",
	}
	concurrencyParam = param{
		Name: "concurrency", Kind: "number", Most: 1_000_000,
		Text: "handlers of one worker; 0: as many as those of the present workers on average",
	}
	minParam = param{Name: "min", Kind: "number", Most: 1_000_000, Text: "the smallest number of workers"}
	maxParam = param{Name: "max", Kind: "number", Most: 1_000_000, Text: "the largest number of workers; 0: any"}
)

// checkName returns an error if a text cannot be the name of a queue.
func (s *site) checkName(name string) error {
	if _, err := delayed.OpenQueue(s.rdb, delayed.QueueConfig{Name: name}); err != nil {
		return bad(document.ErrorText(err.Error()))
	}
	return nil
}

// queue returns the queue that the path names.
func (c *apiCall) queue(s *site) (inspect.Queue, error) {
	name := c.in("queue")
	if err := s.checkName(name); err != nil {
		return inspect.Queue{}, err
	}
	return c.ins.Queue(c.ctx, name)
}

// described returns the queues that the address names, or all.
func (c *apiCall) described(s *site) (queues []inspect.Queue, names []string, err error) {
	names = c.args[queuesParam.Name]
	if len(names) == 0 {
		queues, err = s.queues(c.request)
		return queues, nil, err
	}
	for _, name := range names {
		if err := s.checkName(name); err != nil {
			return nil, nil, err
		}
		q, err := c.ins.Queue(c.ctx, name)
		if err != nil {
			return nil, nil, err
		}
		queues = append(queues, q)
	}
	return queues, names, nil
}

func apiQueues(s *site, c *apiCall) (document.Queues, error) {
	queues, err := s.queues(c.request)
	return document.QueuesOf(queues), err
}

func apiQueue(s *site, c *apiCall) (v document.OneQueue, err error) {
	q, err := c.queue(s)
	if err != nil {
		return v, err
	}
	v.Queue = document.QueueOf(&q)
	if n, err := c.ins.Memory(c.ctx, q.Name); err == nil { // not every server and user may ask that
		v.Queue.MemoryBytes = &n
	}
	return v, nil
}

func apiHistory(s *site, c *apiCall) (v document.History, err error) {
	n, err := c.number(daysParam)
	if err != nil {
		return v, err
	}
	q, err := c.queue(s)
	if err != nil {
		return v, err
	}
	days, err := c.ins.History(c.ctx, q.Name, n)
	return document.HistoryOf(q.Name, days), err
}

func apiStats(s *site, c *apiCall) (v document.Stats, err error) {
	queues, names, err := c.described(s)
	if err != nil {
		return v, err
	}
	workers, err := c.ins.Workers(c.ctx, names...)
	return document.StatsOf(queues, workers), err
}

// per returns how finely and how far back the address says.
func (c *apiCall) per() (document.Per, error) {
	last, err := c.span(lastParam)
	if err != nil {
		return document.Per{}, err
	}
	per, err := document.ParsePer(c.given(perParam), last)
	if err != nil {
		return per, bad("parameter last: " + err.Error())
	}
	return per, nil
}

func apiMetrics(s *site, c *apiCall) (v document.Metrics, err error) {
	per, err := c.per()
	if err != nil {
		return v, err
	}
	queues, _, err := c.described(s)
	if err != nil {
		return v, err
	}
	return document.ReadMetrics(c.ctx, c.ins, per, c.args.Get(functionParam.Name), queues)
}

func apiBacklog(s *site, c *apiCall) (v document.Scale, err error) {
	target, err := c.span(targetParam)
	if err != nil {
		return v, err
	}
	if target == 0 {
		return v, bad("parameter target: expected a duration above 0, such as 1m")
	}
	var numbers [3]int
	for i, p := range []param{concurrencyParam, minParam, maxParam} {
		if numbers[i], err = c.number(p); err != nil {
			return v, err
		}
	}
	if numbers[2] != 0 && numbers[2] < numbers[1] {
		return v, bad("parameter max: expected at least min, " + strconv.Itoa(numbers[1]))
	}
	for _, name := range c.args[queuesParam.Name] {
		if err := s.checkName(name); err != nil {
			return v, err
		}
	}
	b, err := c.ins.Backlog(c.ctx, c.args[queuesParam.Name]...)
	if err != nil {
		return v, err
	}
	wanted, err := b.WorkersFor(target, numbers[0])
	if err != nil {
		return v, err
	}
	if wanted = max(wanted, numbers[1]); numbers[2] > 0 {
		wanted = min(wanted, numbers[2])
	}
	return document.ScaleOf(&b, target, wanted), nil
}

// did says that something was done to a thing with a name.
func did(action, name string) document.Did { return document.Did{Action: action, Done: []string{name}} }

// apiSteer makes an action of one that steers a queue.
func apiSteer(name string, do func(*apiCall, string) error) action {
	return answers(func(s *site, c *apiCall) (v document.Did, err error) {
		if err := s.checkName(c.in("queue")); err != nil {
			return v, err
		}
		return did(name, c.in("queue")), do(c, c.in("queue"))
	})
}

// weightBody is how often workers with weighted queues serve a queue.
type weightBody struct {
	Weight int `json:"weight"` // 1 to 1000, or 0 for the weight that each worker is configured with
}

func apiWeight(s *site, c *apiCall, w *weightBody) (v document.Did, err error) {
	q, err := c.queue(s)
	if err != nil {
		return v, err
	}
	if w.Weight < 0 || w.Weight > maxWeight {
		return v, bad("weight: expected a number from 0 to 1000, found " + strconv.Itoa(w.Weight))
	}
	return did("weight", q.Name), c.ins.SetWeight(c.ctx, q.Name, w.Weight)
}

func apiDeleteQueue(s *site, c *apiCall) (v document.Did, err error) {
	force, err := c.flag(forceParam)
	if err != nil {
		return v, err
	}
	q, err := c.queue(s)
	if err != nil {
		return v, err
	}
	return did("delete", q.Name), c.ins.DeleteQueue(c.ctx, q.Name, force)
}
