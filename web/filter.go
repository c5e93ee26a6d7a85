package web

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godelayed/delayed/inspect"
)

// filterField is one field of inspect.Filter in addresses and forms.
type filterField struct {
	Name, Label, Hint string
	Secret            bool // it looks at what Config.HideArguments hides
	set               func(*inspect.Filter, string) error
	get               func(*inspect.Filter) []string // none if it is not set
}

var filterFields = []filterField{
	textField("function", "Function", "mail.Welcome", false, func(f *inspect.Filter) *string { return &f.Function }),
	textField("prefix", "Id begins with", "01J9ZQ", false, func(f *inspect.Filter) *string { return &f.ID }),
	textField("text", "Call contains", `"en"`, true, func(f *inspect.Filter) *string { return &f.Text }),
	textField("arg", "Argument", "0=42 or 1.user.name=Ann", true, func(f *inspect.Filter) *string { return &f.Arg }),
	textField("error", "Error contains", "mailbox full", true, func(f *inspect.Filter) *string { return &f.Error }),
	textField("reason", "Reason", "failed", false, func(f *inspect.Filter) *string { return &f.Reason }),
	{
		Name: "header", Label: "Header", Hint: "tenant=acme", Secret: true,
		set: func(f *inspect.Filter, text string) error {
			key, value, _ := strings.Cut(text, "=")
			if key == "" {
				return fmt.Errorf("expected a header as key=value, or its key, found %.100q", text)
			}
			if f.Headers == nil {
				f.Headers = map[string]string{}
			}
			f.Headers[key] = value
			return nil
		},
		get: func(f *inspect.Filter) (texts []string) {
			for _, key := range slices.Sorted(maps.Keys(f.Headers)) {
				texts = append(texts, strings.TrimSuffix(key+"="+f.Headers[key], "="))
			}
			return texts
		},
	},
	textField("worker", "Worker", "its id", false, func(f *inspect.Filter) *string { return &f.Worker }),
	textField("group", "Group", "its key", false, func(f *inspect.Filter) *string { return &f.Group }),
	spanField("older", "Older than", "2h", func(f *inspect.Filter) *time.Duration { return &f.OlderThan }),
	spanField("younger", "Younger than", "7d", func(f *inspect.Filter) *time.Duration { return &f.YoungerThan }),
	countField("min", "Attempts, at least", "3", func(f *inspect.Filter) *int { return &f.MinAttempt }),
	countField("max", "Attempts, at most", "10", func(f *inspect.Filter) *int { return &f.MaxAttempt }),
	countField("deaths", "Deaths, at least", "1", func(f *inspect.Filter) *int { return &f.MinDeaths }),
}

func textField(name, label, hint string, secret bool, of func(*inspect.Filter) *string) filterField {
	return filterField{
		name, label, hint, secret,
		func(f *inspect.Filter, text string) error {
			*of(f) = text
			return nil
		},
		func(f *inspect.Filter) []string { return nonzero(*of(f), func(s string) string { return s }) },
	}
}

func spanField(name, label, hint string, of func(*inspect.Filter) *time.Duration) filterField {
	return filterField{
		name, label, hint, false,
		func(f *inspect.Filter, text string) (err error) {
			*of(f), err = parseSpan(text)
			return err
		},
		func(f *inspect.Filter) []string { return nonzero(*of(f), spellSpan) },
	}
}

func countField(name, label, hint string, of func(*inspect.Filter) *int) filterField {
	return filterField{
		name, label, hint, false,
		func(f *inspect.Filter, text string) error {
			n, err := strconv.Atoi(strings.TrimSpace(text))
			if err != nil || n < 1 {
				return fmt.Errorf("expected a number from 1 on, found %.100q", text)
			}
			*of(f) = n
			return nil
		},
		func(f *inspect.Filter) []string { return nonzero(*of(f), strconv.Itoa) },
	}
}

// nonzero returns the text of a value; none of the zero value.
func nonzero[V comparable](v V, text func(V) string) []string {
	if zero := *new(V); v == zero {
		return nil
	}
	return []string{text(v)}
}

// parseFilter reads a filter of an address or a form. Who may not see arguments may not filter by them either: else
// they could be guessed.
func parseFilter(args url.Values, hidden bool) (f inspect.Filter, err error) {
	var wrong []string
	for i := range filterFields {
		field := &filterFields[i]
		for _, text := range args[field.Name] {
			switch {
			case text == "":
			case field.Secret && hidden:
				return f, forbidden("your role does not see arguments, headers and errors, so it cannot filter by " +
					"them: leave out " + field.Name)
			default:
				if err := field.set(&f, text); err != nil {
					wrong = append(wrong, field.Label+": "+err.Error())
				}
			}
		}
	}
	if wrong != nil {
		err = bad(strings.Join(wrong, "\n"))
	}
	return f, err
}

// isFilter reports whether a filter has a name.
func isFilter(name string) bool {
	return slices.ContainsFunc(filterFields, func(f filterField) bool { return f.Name == name })
}

// filterValues returns a filter as it is in an address.
func filterValues(f *inspect.Filter) url.Values {
	values := url.Values{}
	for i := range filterFields {
		if texts := filterFields[i].get(f); texts != nil {
			values[filterFields[i].Name] = texts
		}
	}
	return values
}

// filterWord is one condition of a filter.
type filterWord struct {
	*filterField

	Value string
}

// filterWords returns the conditions of a filter, without what is hidden.
func filterWords(f *inspect.Filter, hidden bool) (words []filterWord) {
	for i := range filterFields {
		field := &filterFields[i]
		for _, text := range field.get(f) {
			if field.Secret && hidden {
				text = "…"
			}
			words = append(words, filterWord{field, text})
		}
	}
	return words
}
