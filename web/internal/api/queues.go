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
			"given, a minute of seconds, or 14 days",
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

func apiQueues(c *apiCall) (document.Queues, error) {
	queues, err := c.site.Queues(c.Request)
	return document.QueuesOf(queues), err
}

func apiQueue(c *apiCall) (v document.OneQueue, err error) {
	q, err := c.Ins.Queue(c.Ctx, c.in("queue"))
	if err != nil {
		return v, err
	}
	v.Queue = document.QueueOf(&q)
	if n, err := c.Ins.Memory(c.Ctx, q.Name); err == nil { // not every server and user may ask that
		v.Queue.MemoryBytes = &n
	}
	return v, nil
}

func apiHistory(c *apiCall) (v document.History, err error) {
	q, err := c.Ins.Queue(c.Ctx, c.in("queue"))
	if err != nil {
		return v, err
	}
	days, err := c.Ins.History(c.Ctx, q.Name, c.number(daysParam))
	return document.HistoryOf(q.Name, days), err
}

func apiStats(c *apiCall, queues []inspect.Queue, names []string) (document.Stats, error) {
	workers, err := c.Ins.Workers(c.Ctx, names...)
	return document.StatsOf(queues, workers), err
}

func apiMetrics(c *apiCall, queues []inspect.Queue, _ []string) (v document.Metrics, err error) {
	per, err := document.ParsePer(c.given(perParam), c.span(lastParam))
	if err != nil {
		return v, site.Bad("parameter last: " + err.Error())
	}
	return document.ReadMetrics(c.Ctx, c.Ins, per, c.Args.Get(functionParam.Name), queues)
}

func apiBacklog(c *apiCall) (v document.Scale, err error) {
	target, least, most := c.span(targetParam), c.number(minParam), c.number(maxParam)
	if target == 0 {
		return v, site.Bad("parameter target: expected a duration above 0, such as 1m")
	}
	if most != 0 && most < least {
		return v, site.Bad("parameter max: expected at least min, " + strconv.Itoa(least))
	}
	b, err := c.Ins.Backlog(c.Ctx, c.Args[queuesParam.Name]...)
	if err != nil {
		return v, err
	}
	wanted, err := b.WorkersFor(target, c.number(concurrencyParam))
	if err != nil {
		return v, err
	}
	if wanted = max(wanted, least); most > 0 {
		wanted = min(wanted, most)
	}
	return document.ScaleOf(&b, target, wanted), nil
}

func apiDiagnosis(c *apiCall) (document.Diagnosis, error) {
	d, err := c.site.Diagnosis(c.Request, c.Args[queuesParam.Name]...)
	return document.DiagnosisOf(&d), err
}

// did reports that something was done to a thing with a name.
func did(action, name string) document.Did { return document.Did{Action: action, Done: []string{name}} }

// apiCommand makes an action of a command. thing is the part of the path with the name of what it is about.
func apiCommand(command site.Command, thing string) action {
	return answers(func(c *apiCall) (document.Did, error) {
		return did(command.Name, c.in(thing)), command.Do(c.site, c.Request, c.in("queue"), c.in(thing))
	})
}

// weightBody is how often workers with weighted queues serve a queue.
type weightBody struct {
	Weight int `json:"weight"` // 1 to 1000, or 0 for the weight that each worker is configured with
}

func apiWeight(c *apiCall, w *weightBody) (document.Did, error) {
	if w.Weight < 0 || w.Weight > site.MaxWeight {
		return document.Did{}, site.Bad("weight: expected a number from 0 to 1000, found " + strconv.Itoa(w.Weight))
	}
	return did("weight", c.in("queue")), c.Ins.SetWeight(c.Ctx, c.in("queue"), w.Weight)
}

func apiDeleteQueue(c *apiCall) (document.Did, error) {
	return did("delete", c.in("queue")), c.Ins.DeleteQueue(c.Ctx, c.in("queue"), c.flag(forceParam))
}
