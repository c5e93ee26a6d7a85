// Package document has the JSON documents that the command delayed prints with --json and that the API of package web
// answers with, and makes them of what package inspect reads. Their schemas are in cmd/delayed/schema.
//
// Times are in UTC, and null or absent if they are unknown; durations are numbers of seconds. Write documents with
// call.JSON, which escapes what does not print.
package document

import (
	"strings"
	"time"
)

// Stamp returns a time as documents have it: in UTC, nil for the zero time.
func Stamp(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// each describes the elements of a list. Documents have an empty list for none, and not null.
func each[T, D any](all []T, describe func(*T) D) []D {
	list := make([]D, len(all))
	for i := range all {
		list[i] = describe(&all[i])
	}
	return list
}

// ErrorText returns the text of an error without the name of the package that it comes from.
func ErrorText(text string) string {
	for _, prefix := range []string{"delayed: ", "inspect: "} {
		if rest, ok := strings.CutPrefix(text, prefix); ok && rest != "" {
			return rest
		}
	}
	return text
}
