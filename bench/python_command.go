package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// pythonCommand runs the command `python`: the Python package of this repository together with other task queues of
// Python.
func pythonCommand(ctx context.Context, args []string) error {
	o := options{rounds: 5, axisRounds: 5, among: pythonPeers}
	_ = measureFlags("python", &o).Parse(args)
	r, err := o.runner(commandLine("python", args), pythonPeers)
	if err != nil {
		return err
	}
	if err := r.run(ctx, pythonScenarios()); err != nil {
		return err
	}
	return o.output(r.results)
}

// pythonTable is the table of `python`.
const pythonTable = "python"

// The rows of that table. Running tasks inside the worker's process and in processes of their own are separate rows.
const (
	pythonOneByOne  = "enqueue, one by one"
	pythonBulk      = "enqueue, 1,000 a call"
	pythonInside    = "drain, in the worker's process"
	pythonProcesses = "drain, in processes"
)

func pythonScenarios() []scenario {
	producers := []string{"godelayed", "godelayed-extended", "keakon", "rq", "celery-solo", "dramatiq-threads"}
	inside := []string{
		"godelayed", "godelayed-extended", "keakon", "rq", "celery-solo", "celery-threads",
		"dramatiq-threads",
	}
	processes := []string{"godelayed-processes", "rq-fork", "celery-defaults", "dramatiq"}
	return []scenario{
		{name: "enqueue 1", awake: true, peers: producers, take: takeEnqueue(pythonTable, pythonOneByOne, 1, 20_000)},
		{name: "enqueue batch", peers: producers, take: takeBatch(pythonTable, pythonBulk, 200_000)},
		{
			name: "drain inside", peers: inside,
			take: takeDrain(drain{n: 50_000, rows: []drainRow{{pythonTable, pythonInside}}}),
		},
		{
			name: "drain processes", peers: processes,
			take: takeDrain(drain{n: 50_000, rows: []drainRow{{pythonTable, pythonProcesses}}}),
		},
	}
}

// pythonAim is a goal for the package: the rate of one figure, as a multiple of a peer's rate.
type pythonAim struct {
	text  string
	row   string
	peer  string
	other string // the row of the peer's figure; row when empty
	least float64
}

var pythonAims = []pythonAim{
	{
		text: "bulk producer: at least 10 times keakon's, which has no call for many", row: pythonBulk, peer: "keakon",
		other: pythonOneByOne, least: 10,
	},
	{text: "worker: not slower than keakon's", row: pythonInside, peer: "keakon", least: 1},
	{text: "worker: at least 10 times RQ's SimpleWorker", row: pythonInside, peer: "rq", least: 10},
	{text: "worker: at least 3 times Celery's with the solo pool", row: pythonInside, peer: "celery-solo", least: 3},
	{text: "worker: at least 3 times Celery's with threads", row: pythonInside, peer: "celery-threads", least: 3},
}

// pythonAimsTable says which aims were reached, by the ratios of single rounds.
func pythonAimsTable(r *results) string {
	var b strings.Builder
	b.WriteString("| aim | found (range of the rounds) | reached |\n|---|---:|---|\n")
	for _, a := range pythonAims {
		ours, theirs := r.find(pythonTable, a.row, perSecond), r.find(pythonTable, cmp.Or(a.other, a.row), perSecond)
		if ours == nil || theirs == nil {
			continue
		}
		both := figure{Values: map[string][]float64{
			"godelayed": ours.Values["godelayed"],
			a.peer:      theirs.Values[a.peer],
		}}
		found, ok := both.ratio("godelayed", a.peer)
		if !ok {
			continue
		}
		reached := "yes"
		if found.Middle < a.least {
			reached = "**no**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", a.text, ratioText(found, true), reached)
	}
	return b.String()
}

// pythonText returns the table: a line for each peer, and how many times better the package of this repository is.
func pythonText(r *results) string {
	rows := []string{pythonOneByOne, pythonBulk, pythonInside, pythonProcesses}
	figures := r.of(pythonTable)
	slices.SortStableFunc(figures,
		func(a, b *figure) int { return slices.Index(rows, a.Row) - slices.Index(rows, b.Row) })
	names := peersOf(r, figures)
	var columns [][]string
	for _, f := range figures {
		column := []string{f.Row}
		for _, name := range names {
			cell := spreadText(f.Values[name])
			if s, ok := f.ratio(pythonBase(f), name); ok && !strings.HasPrefix(name, "godelayed") {
				cell += timesText(s)
			}
			column = append(column, cell)
		}
		columns = append(columns, column)
	}
	return sideBySide(slices.Concat([]string{perSecond}, names), columns)
}

// pythonBase returns the name of the package to which the peers of a figure are compared.
func pythonBase(f *figure) string {
	if f.Row == pythonProcesses {
		return "godelayed-processes"
	}
	return "godelayed"
}
