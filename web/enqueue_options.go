package web

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/godelayed/delayed"
)

// formOption is an option of a call in the form.
type formOption struct {
	Name, Label, Hint, Example string
	Long                       bool // several lines
	parse                      func(text string) ([]delayed.Option, error)
}

var formOptions = []formOption{
	{Name: "in", Label: "In", Hint: "Start it in so long", Example: "15m", parse: spanOption(delayed.In)},
	{
		Name: "at", Label: "At", Hint: "Start it at a time, in UTC if it names no zone", Example: "2026-01-31 15:04",
		parse: func(text string) ([]delayed.Option, error) {
			at, err := parseWhen(text, time.Now())
			return []delayed.Option{delayed.At(at)}, err
		},
	},
	{
		Name: "retries", Label: "Retries", Hint: "How often it is tried again at most", Example: "5",
		parse: func(text string) ([]delayed.Option, error) {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return nil, errors.New("expected a whole number from 0 on, found " + strconv.Quote(text))
			}
			return []delayed.Option{delayed.MaxRetry(n)}, nil
		},
	},
	{
		Name: "timeout", Label: "Timeout", Hint: "How long one run may take", Example: "30s",
		parse: spanOption(delayed.Timeout),
	},
	{
		Name: "ttl", Label: "Time to live", Hint: "After so long it is too late to start it", Example: "1h",
		parse: spanOption(delayed.TTL),
	},
	{
		Name: "unique", Label: "Unique for", Hint: "Refuse another such call for so long at most", Example: "10m",
		parse: spanOption(delayed.Unique),
	},
	{
		Name: "id", Label: "Task id", Hint: "In place of a random one", Example: "invoice-42",
		parse: func(text string) ([]delayed.Option, error) { return []delayed.Option{delayed.TaskID(text)}, nil },
	},
	{
		Name: "retention", Label: "Retention", Hint: "Keep the task for so long after it has succeeded", Example: "1d",
		parse: spanOption(delayed.Retention),
	},
	{
		Name: "result", Label: "Keep result", Hint: "Keep what it returns for so long", Example: "1h",
		parse: spanOption(delayed.KeepResult),
	},
	{
		Name: "group", Label: "Group", Hint: "Key of the group that it is put together with", Example: "shop-7",
		parse: func(text string) ([]delayed.Option, error) { return []delayed.Option{delayed.Group(text)}, nil },
	},
	{
		Name: "headers", Label: "Headers", Hint: "One key=value a line", Example: "tenant=acme", Long: true,
		parse: headerOptions,
	},
}

// spanOption makes an option of a duration.
func spanOption[O delayed.Option](option func(time.Duration) O) func(string) ([]delayed.Option, error) {
	return func(text string) ([]delayed.Option, error) {
		d, err := parseSpan(text)
		return []delayed.Option{option(d)}, err
	}
}

func headerOptions(text string) (options []delayed.Option, err error) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || key == "" {
			return nil, errors.New("expected key=value, found " + strconv.Quote(line))
		}
		options = append(options, delayed.Header(strings.TrimSpace(key), strings.TrimSpace(value)))
	}
	return options, nil
}
