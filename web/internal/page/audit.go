package page

import (
	"slices"
	"strings"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web/internal/site"
)

// auditPage lists what users have done.
type auditPage struct {
	rights

	Rows            []auditRow
	Read            int // records that were read
	Pager           pager
	Actor, Action   string   // those that are shown; "": all
	Actors, Actions []string // of the records that were read
}

// auditRow is what somebody has done.
type auditRow struct {
	inspect.Record

	Words []site.FilterWord // the conditions of its filter
}

// auditRows is how many records are read for a page.
const auditRows = 200

func showAudit(s *shared, q *site.Request) (*page, error) {
	skip := whole(q.Args.Get("skip"))
	records, err := q.Ins.Audit(q.Ctx, skip, auditRows+1)
	if err != nil {
		return nil, err
	}
	p := auditPage{rights: s.rights(q), Actor: q.Args.Get("actor"), Action: q.Args.Get("action")}
	more := 0
	if len(records) > auditRows {
		records, more = records[:auditRows], -1
	}
	p.Pager = newPager(q, skip, auditRows, more)
	p.Read = len(records)
	for i := range records {
		r := &records[i]
		kind := actionKind(r.Action)
		p.Actors, p.Actions = append(p.Actors, r.Actor), append(p.Actions, kind)
		if (p.Actor == "" || p.Actor == r.Actor) && (p.Action == "" || p.Action == kind) {
			row := auditRow{Record: *r}
			if r.Filter != nil {
				row.Words = site.FilterWords(r.Filter, p.Hidden)
			}
			p.Rows = append(p.Rows, row)
		}
	}
	p.Actors, p.Actions = choices(p.Actors, p.Actor), choices(p.Actions, p.Action)
	return &page{Title: "Audit", Template: "audit", Data: &p}, nil
}

// choices returns what may be chosen: each value once, sorted, and what is chosen.
func choices(values []string, chosen string) []string {
	if chosen != "" {
		values = append(values, chosen)
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// actionKind returns an action without what differs each time, such as the time of "reschedule to 2026-01-31".
func actionKind(action string) string {
	kind, _, _ := strings.Cut(action, " to ")
	return kind
}
