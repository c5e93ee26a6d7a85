package api

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/web/internal/site"
)

// param is a parameter in the query of an address.
type param struct {
	Name  string
	Kind  string // text, number, duration or flag
	Text  string // what it is for
	Many  bool   // it may be repeated
	Least int    // of a number
	Most  int
	Usual string // what it is if it is not given; "" for nothing
	Names []string
}

// queryOf returns the parameters of an address, which must be among those of an endpoint.
func queryOf(r *http.Request, params []param) (url.Values, error) {
	args, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, site.Bad("the query of the address cannot be read: " + call.Clip(err.Error(), 100))
	}
	for name, values := range args {
		i := slices.IndexFunc(params, func(p param) bool { return p.Name == name })
		switch {
		case i < 0:
			return nil, site.Bad(fmt.Sprintf("parameter %s: expected %s", strconv.Quote(call.Clip(name, 60)),
				paramNames(params)))
		case len(values) > 1 && !params[i].Many:
			return nil, site.Bad(fmt.Sprintf("parameter %s: expected one, found %d", name, len(values)))
		case len(values) > maxRepeated:
			return nil, site.Bad(fmt.Sprintf("parameter %s: expected at most %d, found %d", name, maxRepeated,
				len(values)))
		}
		if p := &params[i]; p.Names != nil {
			for _, v := range values {
				if !slices.Contains(p.Names, v) {
					return nil, site.Bad(fmt.Sprintf("parameter %s: expected %s, found %s", name, strings.Join(p.Names,
						", "),
						strconv.Quote(call.Clip(v, 60))))
				}
			}
		}
	}
	return args, nil
}

// maxRepeated is how often a parameter may be repeated.
const maxRepeated = 100

func paramNames(params []param) string {
	if len(params) == 0 {
		return "no parameters"
	}
	var names []string
	for i := range params {
		names = append(names, params[i].Name)
	}
	return "one of " + strings.Join(names, ", ")
}

// given returns the value of a parameter, or what it usually is.
func (c *apiCall) given(p param) string {
	if v := c.Args.Get(p.Name); v != "" {
		return v
	}
	return p.Usual
}

// number returns a parameter that is a number; 0 if there is none.
func (c *apiCall) number(p param) (int, error) {
	text := c.given(p)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < p.Least || n > p.Most {
		return 0, site.Bad(fmt.Sprintf("parameter %s: expected a number from %d to %d, found %s", p.Name, p.Least,
			p.Most, strconv.Quote(call.Clip(text, 60))))
	}
	return n, nil
}

// span returns a parameter that is a duration; 0 if there is none.
func (c *apiCall) span(p param) (time.Duration, error) {
	text := c.given(p)
	if text == "" {
		return 0, nil
	}
	d, err := call.ParseSpan(text)
	if err != nil {
		return 0, site.Bad("parameter " + p.Name + ": " + err.Error())
	}
	return d, nil
}

// flag returns a parameter that is true or false.
func (c *apiCall) flag(p param) (bool, error) {
	switch text := c.Args.Get(p.Name); text {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, site.Bad(fmt.Sprintf("parameter %s: expected true or false, found %s", p.Name,
			strconv.Quote(call.Clip(text, 60))))
	}
}

// The parameters that several endpoints have.
var (
	queuesParam = param{Name: "queue", Kind: "text", Many: true, Text: "only of these queues; may be repeated"}
	queueParam  = param{Name: "queue", Kind: "text", Text: "queue of the task; without it, all queues are searched"}
	limitParam  = param{
		Name: "limit", Kind: "number", Least: 1, Most: 1000, Usual: "100", Text: "the largest number of them",
	}
	skipParam = param{
		Name: "skip", Kind: "number", Most: math.MaxInt32, Text: "how many to leave out, the latest first",
	}
)

// filterParams are the conditions on tasks.
func filterParams() (params []param) {
	for i := range call.Conditions {
		f := &call.Conditions[i]
		params = append(params, param{Name: f.Name, Kind: "text", Text: filterText(f), Many: f.Name == "header"})
	}
	return params
}

func filterText(f *call.Condition) string {
	text := f.Label + ", such as " + f.Example
	if f.Secret {
		text += "; not for users from whom arguments are hidden"
	}
	return text
}
