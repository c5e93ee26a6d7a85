package top

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godelayed/delayed/inspect"
)

// filterWords are what a filter for tasks can be made of, in the order in which they are explained.
var filterWords = []string{
	"func", "id", "error", "reason", "worker", "group", "arg", "header", "older", "newer", "attempt", "deaths",
}

// parseFilter reads a filter for tasks: words such as func:Welcome error:"connection refused" older:1h. All that has no
// name is a part of the call as it is shown.
func parseFilter(text string) (f inspect.Filter, err error) {
	var rest []string
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		name, value, named := strings.Cut(text, ":")
		if !named || !slices.Contains(filterWords, name) {
			word, behind, _ := strings.Cut(text, " ")
			rest, text = append(rest, word), behind
			continue
		}
		if value, text, err = cutValue(value); err == nil {
			err = setWord(&f, name, value)
		}
		if err != nil {
			return inspect.Filter{}, err
		}
	}
	f.Text = strings.Join(rest, " ")
	return f, nil
}

// cutValue cuts off a word, or what stands in quotes.
func cutValue(s string) (value, rest string, err error) {
	if quoted, ok := strings.CutPrefix(s, `"`); ok {
		value, rest, ok = strings.Cut(quoted, `"`)
		if !ok {
			return "", "", fmt.Errorf(`expected a closing quote after "%s`, quoted)
		}
		return value, rest, nil
	}
	value, rest, _ = strings.Cut(s, " ")
	return value, rest, nil
}

func setWord(f *inspect.Filter, name, value string) (err error) {
	if value == "" {
		return fmt.Errorf("%s: expected something behind the colon", name)
	}
	switch name {
	case "func":
		f.Function = value
	case "id":
		f.ID = value
	case "error":
		f.Error = value
	case "reason":
		f.Reason = value
	case "worker":
		f.Worker = value
	case "group":
		f.Group = value
	case "arg":
		f.Arg = value
	case "header":
		if f.Headers == nil {
			f.Headers = map[string]string{}
		}
		key, v, _ := strings.Cut(value, "=")
		f.Headers[key] = v
	case "older":
		f.OlderThan, err = parseAge(value)
	case "newer":
		f.YoungerThan, err = parseAge(value)
	case "deaths":
		f.MinDeaths, err = strconv.Atoi(value)
		if err != nil || f.MinDeaths < 1 {
			err = fmt.Errorf("deaths:%s: expected a number, such as 1 for tasks with which a worker has died", value)
		}
	case "attempt":
		f.MinAttempt, err = strconv.Atoi(value)
		if err != nil || f.MinAttempt < 1 {
			err = fmt.Errorf("attempt:%s: expected a number, such as 3 for the third attempt or a later one", value)
		}
	}
	return err
}

// parseAge reads a duration as Go writes it, or in days.
func parseAge(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.Atoi(days)
		if err == nil && n > 0 && n <= 10_000 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("expected a duration such as 90s, 15m, 2h or 7d, found %q", s)
	}
	return d, nil
}
