// Package catalog is the catalog of a library.
package catalog

import (
	"cmp"
	"slices"

	"github.com/godelayed/delayed"
)

// Merge merges lists in order.
func Merge[T cmp.Ordered](a, b []T) []T {
	merged := append(slices.Clone(a), b...)
	slices.Sort(merged)
	return slices.Compact(merged)
}

// Stack is a list of a kind.
type Stack[T any] struct{ items []T }

// Push puts something onto it.
func (s *Stack[T]) Push(item T) { s.items = append(s.items, item) }

// Note keeps what is known of a book, whatever that is.
func Note(book int64, key string, value any) error {
	_, _, _ = book, key, value
	return nil
}

// Import takes over a record of another library.
func Import(record []byte, fields map[string]any, weights [3]float32) bool {
	return len(record) > len(fields)+len(weights)
}

// Scale changes a number of a book.
func Scale(book int64, by float32, level int8, mask uint16) int64 {
	return book * int64(by) * int64(level) * int64(mask)
}

var books Stack[int64]

// Functions with names, for what Go gives no path of its own.
var (
	MergeBooks = delayed.Func(Merge[int64], delayed.Name("catalog.merge"))
	PushBook   = delayed.Func(books.Push, delayed.Name("catalog.push"))
	Count      = delayed.Func(func(shelf string, least int) int {
		return len(shelf) + least
	}, delayed.Name("catalog.count"), delayed.Alias("catalog.old"))
	Notes = delayed.Func(Note, delayed.Optional(2), delayed.MaxRetry(1))
)
