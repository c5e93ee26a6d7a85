package page

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web/internal/chart"
	"github.com/godelayed/delayed/web/internal/format"
	"github.com/godelayed/delayed/web/internal/site"
)

// functionsPage lists functions with what they have done lately.
type functionsPage struct {
	rights
	choice

	Search string
	Rows   []functionRow
	Pager  pager
	Any    bool          // there are functions that the page was not asked for
	Rest   []functionRow // what functions of queues have done that found no room of their own
}

// functionRow is a function of a queue.
type functionRow struct {
	Queue, Path string
	Versions    []functionVersion // the oldest first; none: no worker knows it
	*pace                         // never nil
}

// functionVersion is what some workers run as the function.
type functionVersion struct {
	*inspect.Function

	Known   []workerRow // that run it
	Since   time.Time   // when the first of them has started
	Changes []string    // since the version before
}

// functionRows is how many functions a page lists.
const functionRows = 200

func showFunctions(s *shared, q *site.Request) (*page, error) {
	c, err := s.choose(q)
	if err != nil {
		return nil, err
	}
	rows, err := s.functionRows(q, &c)
	if err != nil {
		return nil, err
	}
	p := functionsPage{rights: s.rights(q), choice: c, Search: q.Args.Get("q"), Any: len(rows) > 0}
	for _, r := range rows {
		switch {
		case r.Path == "":
			p.Rest = append(p.Rest, r)
		case strings.Contains(strings.ToLower(r.Path), strings.ToLower(p.Search)):
			p.Rows = append(p.Rows, r)
		}
	}
	p.Rows, p.Pager = cut(q, p.Rows, functionRows)
	return &page{Title: "Functions", Template: "functions", Data: &p}, nil
}

// functionRows returns the functions that workers of the queues know, and those that have run in the last hour, sorted
// by path and queue.
func (s *shared) functionRows(q *site.Request, c *choice) ([]functionRow, error) {
	functions, err := s.functions(q)
	if err != nil {
		return nil, err
	}
	workers, err := s.workers(q)
	if err != nil {
		return nil, err
	}
	byID := map[string]workerRow{}
	for i := range workers {
		byID[workers[i].ID] = newWorkerRow(&workers[i], workers)
	}
	var rows []functionRow
	err = c.each(q, func(queue *inspect.Queue) error {
		paces, err := s.paces(q, queue.Name)
		rows = append(rows, rowsOf(queue.Name, functions, byID, paces)...)
		return err
	})
	slices.SortStableFunc(rows, func(a, b functionRow) int {
		return cmp.Or(strings.Compare(inspect.ShortName(a.Path), inspect.ShortName(b.Path)),
			strings.Compare(a.Path, b.Path))
	})
	return rows, err
}

// rowsOf returns the functions of one queue.
func rowsOf(
	queue string, functions []inspect.Function, workers map[string]workerRow, paces map[string]*pace,
) (rows []functionRow) {
	versions := map[string][]functionVersion{}
	for path := range paces {
		versions[path] = nil
	}
	for i := range functions {
		if f := &functions[i]; f.Queue == queue {
			versions[f.Path] = append(versions[f.Path], newFunctionVersion(f, workers))
		}
	}
	for path, known := range versions {
		r := functionRow{queue, path, known, cmp.Or(paces[path], &pace{})}
		r.compare()
		rows = append(rows, r)
	}
	return rows
}

func newFunctionVersion(f *inspect.Function, workers map[string]workerRow) functionVersion {
	v := functionVersion{Function: f}
	for _, id := range f.Workers {
		w, ok := workers[id]
		if !ok || !w.Alive() {
			continue // it has stopped meanwhile, or died
		}
		v.Known = append(v.Known, w)
		if !w.Started.IsZero() && (v.Since.IsZero() || w.Started.Before(v.Since)) {
			v.Since = w.Started
		}
	}
	return v
}

// compare sorts the versions by age and lists how they differ. Of versions that no living worker runs one is kept if
// there is no other.
func (r *functionRow) compare() {
	lives := func(v functionVersion) bool { return len(v.Known) > 0 }
	if slices.ContainsFunc(r.Versions, lives) {
		r.Versions = slices.DeleteFunc(r.Versions, func(v functionVersion) bool { return !lives(v) })
	} else {
		r.Versions = r.Versions[:min(len(r.Versions), 1)]
	}
	slices.SortStableFunc(r.Versions, func(a, b functionVersion) int { return a.Since.Compare(b.Since) })
	for i := 1; i < len(r.Versions); i++ {
		r.Versions[i].Changes = differences(r.Versions[i-1].Function, r.Versions[i].Function)
	}
}

// Workers is how many workers know the function.
func (r *functionRow) Workers() (n int) {
	for i := range r.Versions {
		n += len(r.Versions[i].Known)
	}
	return n
}

// Programs are the versions of the programs of those workers, each once.
func (r *functionRow) Programs() (programs []string) {
	for _, v := range r.Versions {
		for i := range v.Known {
			programs = append(programs, cmp.Or(v.Known[i].Program, v.Known[i].Library()))
		}
	}
	slices.Sort(programs)
	return slices.Compact(programs)
}

// Aliases are other paths that tasks of the function may carry, of all versions.
func (r *functionRow) Aliases() (aliases []string) {
	for i := range r.Versions {
		aliases = append(aliases, r.Versions[i].Aliases...)
	}
	slices.Sort(aliases)
	return slices.Compact(aliases)
}

// MayLack reports whether tasks may lack a parameter.
func (v *functionVersion) MayLack(i int) bool { return mayLack(v.Function, i) }

// functionPage is one function of a queue.
type functionPage struct {
	rights
	functionRow

	States []state.Task
	Charts []*chart.Chart // of how long its tasks waited, and ran
	Others []string       // queues whose workers know the function too
}

func showFunction(s *shared, q *site.Request) (*page, error) {
	queue, path := q.Args.Get("queue"), q.Args.Get("path")
	c, err := s.choose(q)
	if err != nil {
		return nil, err
	}
	rows, err := s.functionRows(q, &c)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(rows, func(r functionRow) bool { return r.Path == path && path != "" })
	if at < 0 {
		return nil, site.Missing(fmt.Sprintf("no worker of queue %s knows a function %q, "+
			"and none has run in the last hour", queue, path))
	}
	p := functionPage{rights: s.rights(q), functionRow: rows[at], States: inspect.States}
	p.Charts = []*chart.Chart{
		chart.Spread("wait", "How long tasks waited", &p.Wait), chart.Spread("run", "How long handlers took", &p.Run),
	}
	functions, err := s.functions(q)
	if err != nil {
		return nil, err
	}
	for i := range functions {
		if f := &functions[i]; f.Path == path && f.Queue != queue && !slices.Contains(p.Others, f.Queue) {
			p.Others = append(p.Others, f.Queue)
		}
	}
	return &page{Title: inspect.ShortName(path), Template: "function", Data: &p}, nil
}

// paceSpan is the time that paces are about.
const paceSpan = time.Hour

// pace is what a function has done in the last hour.
type pace struct{ inspect.Sample }

// paces returns the paces of a queue's functions by their paths. "" stands for those that found no room of their own.
// They are shared: callers do not change them.
func (s *shared) paces(q *site.Request, queue string) (map[string]*pace, error) {
	return site.Read(q.Ctx, s.Fast, "paces "+queue, func(ctx context.Context) (map[string]*pace, error) {
		from := time.Now().Add(-paceSpan)
		samples, err := q.Ins.Metrics(ctx, queue, inspect.Minutes, from, time.Time{})
		if err != nil {
			return nil, err
		}
		all := map[string]*pace{}
		// One bucket holds them all, whatever the difference between the clocks of this host and of Redis.
		for path, f := range inspect.SeriesOf(samples, from.Add(-format.Day), 2*format.Day, 1).Functions {
			all[path] = &pace{f.Sum}
		}
		return all, nil
	})
}

// Rate is how often the function has run in a minute, on average.
func (p *pace) Rate() string {
	switch rate := float64(p.Runs) / paceSpan.Minutes(); {
	case p.Runs == 0:
		return "0"
	case rate < 0.1:
		return "< 0.1"
	case rate >= 1000:
		return format.Number(uint64(rate))
	default:
		return format.Significant(rate)
	}
}

// Often reports whether so many runs fail that somebody should look.
func (p *pace) Often() bool { return often(p.Failed, p.Runs) }

// often reports whether a tenth of all runs has failed, or more.
func often(failed, runs uint64) bool { return failed > 0 && failed*10 >= runs }
