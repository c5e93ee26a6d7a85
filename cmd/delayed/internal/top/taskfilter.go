package top

import (
	"fmt"
	"strings"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
)

// parseFilter reads a filter for tasks: words such as func:Welcome error:"connection refused" older:1h. All that has no
// name is a part of the call as it is shown.
func parseFilter(text string) (f inspect.Filter, err error) {
	var rest []string
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		name, value, named := strings.Cut(text, ":")
		c := wordCondition(name)
		if !named || c == nil {
			word, behind, _ := strings.Cut(text, " ")
			rest, text = append(rest, word), behind
			continue
		}
		if value, text, err = cutValue(value); err == nil {
			err = setWord(&f, c, value)
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

func setWord(f *inspect.Filter, c *call.Condition, value string) error {
	if value == "" {
		return fmt.Errorf("%s: expected something behind the colon", c.Word)
	}
	if err := c.Set(f, value); err != nil {
		return fmt.Errorf("%s: %w", c.Word, err)
	}
	return nil
}

// filterWords returns the names of what a filter for tasks can be made of.
func filterWords() (words []string) {
	for i := range call.Conditions {
		if w := call.Conditions[i].Word; w != "" {
			words = append(words, w)
		}
	}
	return words
}

// wordCondition returns the condition that a word is for; nil if there is none.
func wordCondition(name string) *call.Condition {
	for i := range call.Conditions {
		if c := &call.Conditions[i]; c.Word == name && name != "" {
			return c
		}
	}
	return nil
}
