package api

import (
	_ "embed" // for the description
	"encoding/json"
	"maps"
	"slices"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/web/internal/site"
)

//go:embed openapi.json
var openAPI []byte

func apiDescription(*apiCall) (json.RawMessage, error) { return openAPI, nil }

// meAnswer is the user of a request.
type meAnswer struct {
	Name            string `json:"name"`
	Role            string `json:"role"`             // viewer, operator or admin
	ReadOnly        bool   `json:"read_only"`        // nobody may change anything
	ArgumentsHidden bool   `json:"arguments_hidden"` // as are headers, results and errors
}

func apiMe(c *apiCall) (meAnswer, error) {
	return meAnswer{c.User.Name, c.User.Role.String(), c.site.Config.ReadOnly, c.hidden()}, nil
}

func apiFunctions(c *apiCall, _ []inspect.Queue, names []string) (document.Functions, error) {
	functions, err := c.Ins.Functions(c.Ctx, names...)
	return document.FunctionsOf(functions), err
}

func apiWorkers(c *apiCall, _ []inspect.Queue, names []string) (v document.Workers, err error) {
	workers, err := c.Ins.Workers(c.Ctx, names...)
	if err != nil {
		return v, err
	}
	return document.ReadWorkers(c.Ctx, c.Ins, workers)
}

func apiWorker(c *apiCall) (v document.Workers, err error) {
	workers, err := c.Ins.Workers(c.Ctx)
	if err != nil {
		return v, err
	}
	i := slices.IndexFunc(workers, func(w inspect.Worker) bool { return w.ID == c.in("worker") })
	if i < 0 {
		return v, site.Missing("there is no worker with this id: api/v1/workers lists them")
	}
	return document.ReadWorkers(c.Ctx, c.Ins, workers[i:i+1])
}

func apiEntries(c *apiCall, _ []inspect.Queue, names []string) (document.Entries, error) {
	entries, err := c.Ins.Entries(c.Ctx, names...)
	return document.EntriesOf(entries), err
}

func apiTicks(c *apiCall) (v document.Ticks, err error) {
	queue, name := c.in("queue"), c.in("entry")
	runs, err := c.Ins.EntryHistory(c.Ctx, queue, name)
	if err != nil {
		return v, err
	}
	entries, err := c.Ins.Entries(c.Ctx, queue)
	if err != nil {
		return v, err
	}
	if !slices.ContainsFunc(entries, func(e inspect.Entry) bool { return e.Name == name }) {
		return v, site.Missing("the queue has no entry with this name: api/v1/entries lists them")
	}
	return document.TicksOf(queue, name, runs), nil
}

func apiRunEntry(c *apiCall) (v document.Enqueued, err error) {
	ref, err := c.Ins.RunEntry(c.Ctx, c.in("queue"), c.in("entry"))
	return c.enqueued(c.in("queue"), ref, err)
}

func apiGroups(c *apiCall, _ []inspect.Queue, names []string) (document.Groups, error) {
	groups, err := c.Ins.Groups(c.Ctx, names...)
	return document.GroupsOf(groups), err
}

// GroupKey names a group.
type groupBody struct {
	Key      string `json:"key"`
	Function string `json:"function,omitempty"` // only this function's; else those of all functions
}

func apiFire(c *apiCall, g *groupBody) (document.Did, error) {
	_, err := c.Ins.FireGroup(c.Ctx, c.in("queue"), g.Key, g.Function)
	return did("fire", g.Key), err
}

func apiAudit(c *apiCall) (document.Audit, error) {
	records, err := c.Ins.Audit(c.Ctx, c.number(skipParam), c.number(limitParam))
	if c.hidden() {
		for i := range records {
			if f := records[i].Filter; f != nil {
				records[i].Filter = veiled(f)
			}
		}
	}
	return document.AuditOf(records), err
}

// veiled returns a filter without what looks at arguments, headers and errors.
func veiled(f *inspect.Filter) *inspect.Filter {
	own := *f
	for _, text := range []*string{&own.Text, &own.Arg, &own.Error} {
		if *text != "" {
			*text = "…"
		}
	}
	own.Headers = maps.Clone(f.Headers)
	for key := range own.Headers {
		own.Headers[key] = "…"
	}
	return &own
}
