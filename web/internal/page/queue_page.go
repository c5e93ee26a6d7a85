package page

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web/internal/chart"
	"github.com/godelayed/delayed/web/internal/site"
)

// queuePage is all about one queue.
type queuePage struct {
	rights

	Queue     inspect.Queue
	Sizes     []figure
	Deletable []queueSize // states in which there is something that can be deleted
	Figures   []figure
	Problems  []problemRow
	Span      *chart.Span
	Spans     []chart.SpanLink
	Charts    []*chart.Chart
	Functions []queueFunction
	Waiting   *waiting
	Days      []inspect.Day
	MoreDays  bool
	Workers   []queueWorker
	Memory    int64 // 0: unknown
}

// queueFunction is what has become of the tasks of one function.
type queueFunction struct {
	Function string // path; "" for all functions that found no room
	Sample   *inspect.Sample
	Pending  int // among those that were scanned
}

// waiting counts pending tasks by function, among the first ones.
type waiting struct {
	by    map[string]int
	Total int // that are pending
	Seen  int
}

// queueWorker is a worker that serves the queue.
type queueWorker struct {
	inspect.Worker

	Claims  int // on this queue
	Longest *inspect.Running
}

const (
	waitingSize = 200
	fewDays     = 14
	allDays     = 90
)

// queueOf describes the queue that field name names, which must be one that there is: a typo makes none.
func (s *shared) queueOf(q *site.Request) (inspect.Queue, error) {
	name := q.Args.Get("name")
	if err := s.CheckName(name); err != nil {
		return inspect.Queue{}, err
	}
	return q.Ins.Queue(q.Ctx, name)
}

func showQueue(s *shared, q *site.Request) (*page, error) {
	queue, err := s.queueOf(q)
	if err != nil {
		return nil, err
	}
	name := queue.Name
	p := &queuePage{rights: s.rights(q), Queue: queue}
	for _, st := range inspect.States {
		if n := queue.Size(st); n > 0 && st != state.Active {
			p.Deletable = append(p.Deletable, queueSize{st, n})
		}
	}
	workers, err := site.Read(q.Ctx, s.Fast, "workers of "+name, func(ctx context.Context) ([]inspect.Worker, error) {
		return q.Ins.Workers(ctx, name)
	})
	if err != nil {
		return nil, err
	}
	if err := s.flowOfQueue(q, p, workers); err != nil {
		return nil, err
	}
	if p.Problems, err = s.problems(q, name); err != nil {
		return nil, err
	}
	p.Days, err = s.daysOf(q, name, &p.MoreDays)
	if err != nil {
		return nil, err
	}
	p.Memory, _ = site.Read(q.Ctx, s.Slow, "memory "+name, func(ctx context.Context) (int64, error) {
		return q.Ins.Memory(ctx, name)
	})
	for i := range workers {
		p.Workers = append(p.Workers, workerOf(&workers[i], name))
	}
	return &page{Title: "Queue " + inspect.Printable(name), Template: "queue", Data: p}, nil
}

// ran is what has run in a queue, and by which functions.
type ran struct {
	flow *chart.Flow
	sums map[string]*inspect.FunctionSeries
}

// flowOfQueue fills in what has run and what waits.
func (s *shared) flowOfQueue(q *site.Request, p *queuePage, workers []inspect.Worker) error {
	name := p.Queue.Name
	p.Span = chart.SpanOf(q.Args.Get("span"), 1)
	p.Spans = chart.SpanLinks(p.Span)
	r, err := site.Read(q.Ctx, s.Slow, "ran "+p.Span.Name+" "+name, func(ctx context.Context) (*ran, error) {
		f, sums, err := chart.FlowOf(ctx, q.Ins, name, p.Span, p.Queue.At)
		return &ran{f, sums}, err
	})
	if err != nil {
		return err
	}
	p.Waiting, err = site.Read(q.Ctx, s.Slow, "waiting "+name, func(ctx context.Context) (*waiting, error) {
		return waitingIn(ctx, q.Ins, name)
	})
	if err != nil {
		return err
	}
	sum := r.flow.Sum()
	one := []inspect.Queue{p.Queue}
	p.Sizes, p.Figures = sizeFigures(one, inspect.States, name), ranFigures(one, workers, r.flow, name)
	p.Charts = append(r.flow.Charts(), chart.Spread("waits", "How long tasks waited", &sum.Wait),
		chart.Spread("spread", "How long handlers took", &sum.Run))
	p.Functions = functionsOf(r.sums, p.Waiting.by)
	return nil
}

// waitingIn counts the first pending tasks of a queue by function.
func waitingIn(ctx context.Context, ins *inspect.Inspector, queue string) (*waiting, error) {
	page, err := ins.Tasks(ctx, queue, inspect.Query{State: state.Pending, Limit: waitingSize})
	if err != nil {
		return nil, err
	}
	w := &waiting{by: map[string]int{}, Seen: len(page.Tasks), Total: max(page.Total, len(page.Tasks))}
	for i := range page.Tasks {
		w.by[page.Tasks[i].Function]++
	}
	return w, nil
}

// functionsOf puts together what has run and what waits; what has run most comes first.
func functionsOf(sums map[string]*inspect.FunctionSeries, pending map[string]int) (all []queueFunction) {
	for path, sum := range sums {
		all = append(all, queueFunction{path, &sum.Sum, pending[path]})
	}
	for _, path := range slices.Sorted(maps.Keys(pending)) {
		if sums[path] == nil {
			all = append(all, queueFunction{path, &inspect.Sample{}, pending[path]})
		}
	}
	slices.SortFunc(all, func(a, b queueFunction) int {
		return cmp.Or(cmp.Compare(b.Sample.Runs, a.Sample.Runs), cmp.Compare(b.Pending, a.Pending),
			cmp.Compare(a.Function, b.Function))
	})
	return all
}

// daysOf returns the counts of some days, or of all that are kept if the address asks for them.
func (s *shared) daysOf(q *site.Request, name string, more *bool) ([]inspect.Day, error) {
	n := fewDays
	if q.Args.Get("days") == "all" {
		n = allDays
	}
	key := "days " + strconv.Itoa(n) + " " + name
	days, err := site.Read(q.Ctx, s.Slow, key, func(ctx context.Context) ([]inspect.Day, error) {
		return q.Ins.History(ctx, name, n)
	})
	if err != nil {
		return nil, err
	}
	last := len(days)
	for last > 1 && days[last-1].Counts == (inspect.Counts{}) {
		last--
	}
	*more = n == fewDays && last == len(days)
	return days[:last], nil
}

// workerOf describes a worker on one of its queues.
func workerOf(w *inspect.Worker, queue string) queueWorker {
	found := queueWorker{Worker: *w}
	for _, q := range w.Queues {
		if q.Name == queue {
			found.Claims = q.Claims
		}
	}
	for i := range w.Running {
		if r := &w.Running[i]; r.Queue == queue && (found.Longest == nil || r.Started.Before(found.Longest.Started)) {
			found.Longest = r
		}
	}
	return found
}

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
