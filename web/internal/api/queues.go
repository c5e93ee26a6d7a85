package api

import (
	"strconv"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/web/internal/site"
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

// queue returns the queue that the path names.
func (c *apiCall) queue(s *shared) (inspect.Queue, error) {
	name := c.in("queue")
	if err := s.CheckName(name); err != nil {
		return inspect.Queue{}, err
	}
	return c.Ins.Queue(c.Ctx, name)
}

// described returns the queues that the address names, or all.
func (c *apiCall) described(s *shared) (queues []inspect.Queue, names []string, err error) {
	names = c.Args[queuesParam.Name]
	if len(names) == 0 {
		queues, err = s.Queues(c.Request)
		return queues, nil, err
	}
	for _, name := range names {
		if err := s.CheckName(name); err != nil {
			return nil, nil, err
		}
		q, err := c.Ins.Queue(c.Ctx, name)
		if err != nil {
			return nil, nil, err
		}
		queues = append(queues, q)
	}
	return queues, names, nil
}

func apiQueues(s *shared, c *apiCall) (document.Queues, error) {
	queues, err := s.Queues(c.Request)
	return document.QueuesOf(queues), err
}

func apiQueue(s *shared, c *apiCall) (v document.OneQueue, err error) {
	q, err := c.queue(s)
	if err != nil {
		return v, err
	}
	v.Queue = document.QueueOf(&q)
	if n, err := c.Ins.Memory(c.Ctx, q.Name); err == nil { // not every server and user may ask that
		v.Queue.MemoryBytes = &n
	}
	return v, nil
}

func apiHistory(s *shared, c *apiCall) (v document.History, err error) {
	n, err := c.number(daysParam)
	if err != nil {
		return v, err
	}
	q, err := c.queue(s)
	if err != nil {
		return v, err
	}
	days, err := c.Ins.History(c.Ctx, q.Name, n)
	return document.HistoryOf(q.Name, days), err
}

func apiStats(s *shared, c *apiCall) (v document.Stats, err error) {
	queues, names, err := c.described(s)
	if err != nil {
		return v, err
	}
	workers, err := c.Ins.Workers(c.Ctx, names...)
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
		return per, site.Bad("parameter last: " + err.Error())
	}
	return per, nil
}

func apiMetrics(s *shared, c *apiCall) (v document.Metrics, err error) {
	per, err := c.per()
	if err != nil {
		return v, err
	}
	queues, _, err := c.described(s)
	if err != nil {
		return v, err
	}
	return document.ReadMetrics(c.Ctx, c.Ins, per, c.Args.Get(functionParam.Name), queues)
}

func apiBacklog(s *shared, c *apiCall) (v document.Scale, err error) {
	target, err := c.span(targetParam)
	if err != nil {
		return v, err
	}
	if target == 0 {
		return v, site.Bad("parameter target: expected a duration above 0, such as 1m")
	}
	var numbers [3]int
	for i, p := range []param{concurrencyParam, minParam, maxParam} {
		if numbers[i], err = c.number(p); err != nil {
			return v, err
		}
	}
	if numbers[2] != 0 && numbers[2] < numbers[1] {
		return v, site.Bad("parameter max: expected at least min, " + strconv.Itoa(numbers[1]))
	}
	for _, name := range c.Args[queuesParam.Name] {
		if err := s.CheckName(name); err != nil {
			return v, err
		}
	}
	b, err := c.Ins.Backlog(c.Ctx, c.Args[queuesParam.Name]...)
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
	return answers(func(s *shared, c *apiCall) (v document.Did, err error) {
		if err := s.CheckName(c.in("queue")); err != nil {
			return v, err
		}
		return did(name, c.in("queue")), do(c, c.in("queue"))
	})
}

// weightBody is how often workers with weighted queues serve a queue.
type weightBody struct {
	Weight int `json:"weight"` // 1 to 1000, or 0 for the weight that each worker is configured with
}

func apiWeight(s *shared, c *apiCall, w *weightBody) (v document.Did, err error) {
	q, err := c.queue(s)
	if err != nil {
		return v, err
	}
	if w.Weight < 0 || w.Weight > site.MaxWeight {
		return v, site.Bad("weight: expected a number from 0 to 1000, found " + strconv.Itoa(w.Weight))
	}
	return did("weight", q.Name), c.Ins.SetWeight(c.Ctx, q.Name, w.Weight)
}

func apiDeleteQueue(s *shared, c *apiCall) (v document.Did, err error) {
	force, err := c.flag(forceParam)
	if err != nil {
		return v, err
	}
	q, err := c.queue(s)
	if err != nil {
		return v, err
	}
	return did("delete", q.Name), c.Ins.DeleteQueue(c.Ctx, q.Name, force)
}

func apiDiagnosis(s *shared, c *apiCall) (v document.Diagnosis, err error) {
	names := c.Args[queuesParam.Name]
	for _, name := range names {
		if err := s.CheckName(name); err != nil {
			return v, err
		}
	}
	d, err := s.Diagnosis(c.Request, names...)
	return document.DiagnosisOf(&d), err
}
