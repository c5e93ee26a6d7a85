package site

import (
	"net/url"
	"slices"
	"strings"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
)

// ParseFilter reads a filter of an address or a form. Who may not see arguments may not filter by them either: else
// they could be guessed.
func ParseFilter(args url.Values, hidden bool) (f inspect.Filter, err error) {
	var wrong []string
	for i := range call.Conditions {
		field := &call.Conditions[i]
		for _, text := range args[field.Name] {
			switch {
			case text == "":
			case field.Secret && hidden:
				return f, Forbidden("your role does not see arguments, headers and errors, so it cannot filter by " +
					"them: leave out " + field.Name)
			default:
				if err := field.Set(&f, text); err != nil {
					wrong = append(wrong, field.Label+": "+err.Error())
				}
			}
		}
	}
	if wrong != nil {
		err = Bad(strings.Join(wrong, "\n"))
	}
	return f, err
}

// IsFilter reports whether a filter has a name.
func IsFilter(name string) bool {
	return slices.ContainsFunc(call.Conditions, func(f call.Condition) bool { return f.Name == name })
}

// FilterValues returns a filter as it is in an address.
func FilterValues(f *inspect.Filter) url.Values {
	values := url.Values{}
	for i := range call.Conditions {
		if texts := call.Conditions[i].Get(f); texts != nil {
			values[call.Conditions[i].Name] = texts
		}
	}
	return values
}

// FilterWord is one condition of a filter.
type FilterWord struct {
	*call.Condition

	Value string
}

// FilterWords returns the conditions of a filter, without what is hidden.
func FilterWords(f *inspect.Filter, hidden bool) (words []FilterWord) {
	for i := range call.Conditions {
		field := &call.Conditions[i]
		for _, text := range field.Get(f) {
			if field.Secret && hidden {
				text = "…"
			}
			words = append(words, FilterWord{field, text})
		}
	}
	return words
}
