package api

import (
	"fmt"
	"math"
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
	functionParam = param{
		Name: "function", Kind: "text", Text: "only of this function: its path or the end of it, such as mail.Welcome",
	}
)

// maxRepeated is how often a parameter may be repeated.
const maxRepeated = 100

// query returns the parameters of the address. They are among the given ones, and have values of their kinds.
func (c *apiCall) query(params []param) (url.Values, error) {
	args, err := url.ParseQuery(c.http.URL.RawQuery)
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
		for _, v := range values {
			if err := c.check(&params[i], v); err != nil {
				return nil, err
			}
		}
	}
	return args, nil
}

// check returns an error if a text is no value of a parameter.
func (c *apiCall) check(p *param, text string) error {
	expected := ""
	switch {
	case p.Names != nil && !slices.Contains(p.Names, text):
		expected = strings.Join(p.Names, ", ")
	case p.Name == queuesParam.Name && (text != "" || p.Many):
		return c.site.CheckName(text)
	case text == "":
	case p.Kind == "number":
		if n, err := strconv.Atoi(text); err != nil || n < p.Least || n > p.Most {
			expected = fmt.Sprintf("a number from %d to %d", p.Least, p.Most)
		}
	case p.Kind == "duration":
		if _, err := call.ParseSpan(text); err != nil {
			return site.Bad("parameter " + p.Name + ": " + err.Error())
		}
	case p.Kind == "flag" && text != "true" && text != "false":
		expected = "true or false"
	}
	if expected == "" {
		return nil
	}
	return site.Bad(fmt.Sprintf("parameter %s: expected %s, found %s", p.Name, expected,
		strconv.Quote(call.Clip(text, 60))))
}

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
func (c *apiCall) number(p param) int {
	n, _ := strconv.Atoi(c.given(p)) // checked by query
	return n
}

// span returns a parameter that is a duration; 0 if there is none.
func (c *apiCall) span(p param) time.Duration {
	d, _ := call.ParseSpan(c.given(p)) // checked by query
	return d
}

// flag returns a parameter that is true or false.
func (c *apiCall) flag(p param) bool { return c.Args.Get(p.Name) == "true" }

// filterParams are the conditions on tasks.
func filterParams() (params []param) {
	for i := range call.Conditions {
		f := &call.Conditions[i]
		text := f.Label + ", such as " + f.Example
		if f.Secret {
			text += "; not for users from whom arguments are hidden"
		}
		params = append(params, param{Name: f.Name, Kind: "text", Text: text, Many: f.Name == "header"})
	}
	return params
}
