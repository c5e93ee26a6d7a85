package page

import (
	"slices"
	"strings"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web/internal/site"
)

// functionsPage lists functions with what they have done lately.
type functionsPage struct {
	rights
	choice

	Search string
	Rows   []functionRow
	Pager  pager
	Any    bool // there are functions that the page was not asked for
	Rest   []restRow
}

// restRow is what functions of a queue have done that found no room of their own.
type restRow struct {
	Queue string
	*pace
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
			p.Rest = append(p.Rest, restRow{r.Queue, r.pace})
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
		if c := strings.Compare(inspect.ShortName(a.Path), inspect.ShortName(b.Path)); c != 0 {
			return c
		}
		return strings.Compare(a.Path, b.Path)
	})
	return rows, err
}

// rowsOf returns the functions of one queue.
func rowsOf(
	queue string, functions []inspect.Function, workers map[string]workerRow, paces map[string]*pace,
) (rows []functionRow) {
	place := map[string]int{}
	row := func(path string) *functionRow {
		at, ok := place[path]
		if !ok {
			at = len(rows)
			place[path] = at
			own := paces[path]
			if own == nil {
				own = &pace{}
			}
			rows = append(rows, functionRow{Queue: queue, Path: path, pace: own})
		}
		return &rows[at]
	}
	for i := range functions {
		if f := &functions[i]; f.Queue == queue {
			r := row(f.Path)
			r.Versions = append(r.Versions, newFunctionVersion(f, workers))
		}
	}
	for path := range paces {
		row(path)
	}
	for i := range rows {
		rows[i].compare()
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

// compare sorts the versions by age and says how they differ. Of versions that no living worker runs one is kept if
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
func (r *functionRow) Workers() int {
	n := 0
	for i := range r.Versions {
		n += len(r.Versions[i].Known)
	}
	return n
}

// Programs are the versions of the programs of those workers, each once.
func (r *functionRow) Programs() (programs []string) {
	for i := range r.Versions {
		programs = append(programs, r.Versions[i].Programs()...)
	}
	slices.Sort(programs)
	return slices.Compact(programs)
}

// Programs are the versions of the programs that run this version, each once, sorted.
func (v *functionVersion) Programs() (programs []string) {
	for i := range v.Known {
		if p := v.Known[i].Program; p != "" {
			programs = append(programs, p)
		} else {
			programs = append(programs, v.Known[i].Library())
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

// Rows are the parameters of this version.
func (v *functionVersion) Rows() (rows []parameterRow) {
	for i := range v.Parameters {
		p := &v.Parameters[i]
		r := parameterRow{Number: i + 1, Name: p.Name, Type: v.TypeOf(i), Holds: shapeText(p.Shape)}
		r.Optional = mayLack(v.Function, i)
		rows = append(rows, r)
	}
	return rows
}

// parameterRow is a parameter of a function.
type parameterRow struct {
	Number            int
	Name, Type, Holds string
	Optional          bool // tasks may lack it
}
