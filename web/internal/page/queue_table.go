package page

import (
	"cmp"
	"html/template"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web/internal/chart"
)

// queueTable lists queues, a page of them if there are many.
type queueTable struct {
	Rows       []queueRow
	Heads      []sortLink
	Find       string // part of the names of those that are listed
	Total      int    // queues in all
	From, To   int    // of those that are found, from 1
	Found      int
	Prev, Next template.URL
	Search     bool        // there are so many that one may look for some
	Keep       [][2]string // fields of the address that a search keeps
	KeepSort   [][2]string // and another order
}

// queueRow is a queue in the table.
type queueRow struct {
	inspect.Queue

	Spark template.HTML
	Runs  uint64 // in the last hour
	Sizes []queueSize
}

// queueSize is how many tasks of a queue are in a state.
type queueSize struct {
	State state.Task
	N     int
}

// sortLink is a heading that sorts the table.
type sortLink struct {
	Key, Name, Help string
	Href            template.URL
	Here            bool
	Number          bool
}

const (
	rowsOfQueues = 50
	searchFrom   = 12
)

// column is a column that a table of queues can be sorted by, the largest numbers first.
type column struct {
	key, name, help string
	of              func(*queueRow) float64 // nil: the order of queues
}

// columns are those of the table of queues.
func columns() []column {
	all := []column{
		{"", "Queue", "", nil},
		{"runs", "Last hour", "Runs in the last hour", func(q *queueRow) float64 { return float64(q.Runs) }},
	}
	for _, st := range inspect.States {
		c := column{st.String(), title(st), stateHelp[st], func(q *queueRow) float64 { return float64(q.Size(st)) }}
		if st == state.Aggregating {
			c.name = "Groups"
		}
		all = append(all, c)
	}
	latency := func(q *queueRow) float64 { return q.Latency.Seconds() }
	failed := func(q *queueRow) float64 { return float64(q.Today.Failed) }
	workers := func(q *queueRow) float64 { return float64(q.Workers) }
	return append(all, []column{
		{"latency", "Oldest waits", "For how long the oldest pending task has waited", latency},
		{"failed", "Failed today", "Runs that failed today, in UTC", failed},
		{"workers", "Workers", "Workers that serve the queue", workers},
	}...)
}

// tableOf returns the table of queues that the fields sort, find and page of an address ask for.
func tableOf(queues []inspect.Queue, runs map[string][]float64, args url.Values) *queueTable {
	t := &queueTable{Find: args.Get("find"), Total: len(queues), Search: len(queues) >= searchFrom}
	rows := make([]queueRow, 0, len(queues))
	for i := range queues {
		if !strings.Contains(strings.ToLower(queues[i].Name), strings.ToLower(t.Find)) {
			continue
		}
		row := queueRow{Queue: queues[i]}
		for _, v := range runs[row.Name] {
			if !math.IsNaN(v) {
				row.Runs += uint64(v)
			}
		}
		rows = append(rows, row)
	}
	by := args.Get("sort")
	for _, s := range columns() {
		here := s.key == by
		t.Heads = append(t.Heads, sortLink{s.key, s.name, s.help, t.address(args, "sort", s.key), here, s.of != nil})
		if here && s.of != nil {
			slices.SortStableFunc(rows, func(a, b queueRow) int { return cmp.Compare(s.of(&b), s.of(&a)) })
		}
	}
	t.Found = len(rows)
	n, _ := strconv.Atoi(args.Get("page")) // anything else is the first page
	n = min(max(n, 1), max((len(rows)+rowsOfQueues-1)/rowsOfQueues, 1))
	first := (n - 1) * rowsOfQueues
	t.Rows = rows[first:min(first+rowsOfQueues, len(rows))]
	t.From, t.To = first+1, first+len(t.Rows)
	if n > 1 {
		t.Prev = t.address(args, "page", strconv.Itoa(n-1))
	}
	if t.To < t.Found {
		t.Next = t.address(args, "page", strconv.Itoa(n+1))
	}
	t.Keep, t.KeepSort = pairsOf(args, "span", "sort"), pairsOf(args, "span", "find")
	for i := range t.Rows {
		row := &t.Rows[i]
		row.Spark = chart.Sparkline(runs[row.Name])
		for _, s := range inspect.States {
			row.Sizes = append(row.Sizes, queueSize{s, row.Size(s)})
		}
	}
	return t
}

// pairsOf returns the fields of an address that have a value.
func pairsOf(args url.Values, names ...string) (pairs [][2]string) {
	for _, name := range names {
		if v := args.Get(name); v != "" {
			pairs = append(pairs, [2]string{name, v})
		}
	}
	return pairs
}

// address returns the address of the same page with one field changed.
func (t *queueTable) address(args url.Values, name, value string) template.URL {
	pairs := []any{}
	for _, k := range []string{"queue", "span", "find", "sort", "page"} {
		v := args.Get(k)
		switch k {
		case name:
			v = value
		case "page": // another order begins anew
			v = ""
		}
		pairs = append(pairs, k, v)
	}
	return link("./", pairs...)
}
