package page

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web/internal/auth"
	"github.com/godelayed/delayed/web/internal/format"
	"github.com/godelayed/delayed/web/internal/site"
)

// deed is something that a user can do by a form.
type deed struct {
	Role auth.Role
	do   func(*shared, *site.Request) (outcome, error)
}

// outcome is where the browser goes after a deed, and what it shows there.
type outcome struct {
	To   string // an address of this site; "" for where the form says
	Text string
	Bad  bool  // it went wrong, in part at least
	Form *page // in place of all that: the form once more, with what was typed and what is wrong with it
}

// verbDeeds returns the deeds of a page that does all verbs, by their names behind a beginning.
func verbDeeds(
	deeds map[string]deed, beginning string, do func(*shared, *site.Request) (outcome, error),
) map[string]deed {
	for _, v := range site.Verbs {
		deeds[beginning+v.Name] = deed{auth.Operator, do}
	}
	return deeds
}

// verbNamed returns the verb of a form: the value of its field "do", with or without a beginning.
func verbNamed(args url.Values, beginning string) *site.Verb {
	name := strings.TrimPrefix(args.Get("do"), beginning)
	i := slices.IndexFunc(site.Verbs, func(v site.Verb) bool { return v.Name == name })
	return &site.Verbs[i] // the deeds are made of verbs
}

// mostTold is how many failures an outcome tells of.
const mostTold = 3

// outcomeOf says what was done to tasks with given ids.
func outcomeOf(v *site.Verb, r *inspect.Report) outcome {
	parts := []string{fmt.Sprintf("%s %s.", v.Past, tasks(r.Done))}
	if r.Skipped > 0 {
		parts = append(parts, tasks(r.Skipped)+" had left the state meanwhile.")
	}
	failed := len(r.Failed) + r.FailedMore
	if failed > 0 {
		parts = append(parts, fmt.Sprintf("It went wrong with %s:", tasks(failed)))
	}
	for _, f := range r.Failed[:min(len(r.Failed), mostTold)] {
		parts = append(parts, fmt.Sprintf("%.60s: %v.", inspect.Printable(f.ID), f.Err))
	}
	if failed > mostTold {
		parts = append(parts, fmt.Sprintf("And so on with %d more.", failed-mostTold))
	}
	if r.Done == 0 && failed == 0 && r.Skipped > 0 {
		parts = parts[1:]
	}
	return outcome{Text: strings.Join(parts, " "), Bad: failed > 0 || r.Done == 0}
}

// tasks counts tasks in words.
func tasks(n int) string {
	if n == 1 {
		return "1 task"
	}
	return format.Number(n) + " tasks"
}

// packID writes the id of a task for a field of a form, which would change line ends and what is not UTF-8.
func packID(id string) string { return url.QueryEscape(id) }

// unpackIDs reads ids that packID has written.
func unpackIDs(packed []string) (ids []string, err error) {
	for _, text := range packed {
		id, err := url.QueryUnescape(text)
		if err != nil {
			return nil, site.Bad("expected the id of a task, escaped as in addresses")
		}
		if id != "" {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
