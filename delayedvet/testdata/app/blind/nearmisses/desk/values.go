package desk

import (
	"context"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/blind/nearmisses/catalog"
	"example.com/app/blind/nearmisses/exec"
	"example.com/app/blind/nearmisses/loans"
	"example.com/app/blind/nearmisses/notify"
)

// Values delays functions with lists, structs and functions of all kinds.
func Values(ctx context.Context, q *delayed.Queue, cards []string, l loans.Loan) error {
	values := []any{"c1", "%v and %v", 1, nil}
	wish := loans.Option{Name: "edition", Value: "2"}
	urgent := delayed.Front()
	refs := []*delayed.Ref{
		// right: a slice for the whole tail
		must(q.Delay(notify.Each, "hello", cards)),
		// right: the tail is empty
		must(q.Delay(notify.Text, "c1", "welcome")),
		// right: the tail takes anything
		must(q.Delay(notify.Text, "c1", "%d %v %s", 1, 2.5, "x", nil, true)),
		// right: four values
		must(q.Delay(notify.Text, values...)),
		// right: a slice for a slice
		must(q.Delay(notify.Many, "hello", cards)),
		// right: values one by one
		must(q.Delay(notify.Each, "hello", "c1", cards[0])),
		// right: options of another package
		must(q.DelayContext(ctx, loans.Begin, l, wish, wish)),
		// right: a text named context
		must(q.Delay(loans.Ask, "in a hurry", wish, time.Hour)),
		// right: those fields are not sent
		must(q.Delay(loans.Move, &loans.Copy{Book: 1}, loans.Shelf(3))),
		// right: any takes a map
		must(q.Delay(catalog.Note, 1, "author", map[string]int{"born": 1799})),
		// right: any takes a struct
		must(q.Delay(catalog.Note, 1, "loan", l)),
		// right: any takes nil
		must(q.Delay(catalog.Note, 1, "nothing", nil)),
		// right: carried all
		must(q.Delay(catalog.Import, []byte("x"), map[string]any{"a": 1}, [3]float32{1, 2})),
		// right: slices and maps may be nil
		must(q.Delay(catalog.Import, nil, nil, [...]float32{1, 2, 3})),
		// right: an instance with a name
		must(q.Delay(catalog.MergeBooks, []int64{1}, []int64{2})),
		// right: a method value with a name
		must(q.Delay(catalog.PushBook, 7)),
		// right: a closure with a name
		must(q.Delay(catalog.Count, "a", 1)),
		// right: all optional values are there
		must(q.Delay(catalog.Notes, 1, "author", "Gogol")),
		// right: the worker has the receiver
		must(q.Delay((*notify.Desk).Write, "c1", "hello")),
		// right: a method of a value
		must(q.Delay(notify.Head.Close)),
		// right: front alone
		must(q.With(urgent).Delay(loans.Sweep)),
		// right: the library's own exec
		must(q.Delay(exec.Command, "publisher", "isbn")),
	}
	for _, ref := range refs {
		if ref.Queue() != q.Name() {
			return delayed.ErrNoID
		}
	}
	return nil
}

// must returns a reference, and panics if there is an error.
func must(ref *delayed.Ref, err error) *delayed.Ref {
	if err != nil {
		panic(err)
	}
	return ref
}
