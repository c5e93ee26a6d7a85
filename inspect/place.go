package inspect

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/state"
)

// place is a place in a list, behind one of its tasks. The zero value is the beginning.
type place struct {
	Part   int                 `json:"p,omitempty"` // of a list that has several
	N      int                 `json:"n,omitempty"` // how many members of that part are older than the place
	Last   []uint64            `json:"l,omitempty"` // digests of the last messages before it
	In     redisstore.SetPlace `json:"s,omitzero"`  // in a sorted set, of tasks or groups
	Worker string              `json:"w,omitempty"`
	Token  string              `json:"t,omitempty"`
}

// cursor is a place and the list that it is in, as JSON.
type cursor struct {
	place
	State state.Task `json:"q"`
	Back  bool       `json:"b,omitempty"`
}

// cursor returns the cursor for a place.
func (at *place) cursor(q *Query) string {
	b, err := json.Marshal(cursor{*at, q.State, q.NewestFirst})
	if err != nil {
		panic(err) // it has no type that JSON lacks
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// ErrCursor says that a Query.Cursor is not one of the list that the query is about.
var ErrCursor = errors.New("inspect: not a cursor of this list")

// place returns the place of a query's cursor.
func (q *Query) place() (place, error) {
	var c cursor
	if q.Cursor == "" {
		return c.place, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil || c.State != q.State || c.Back != q.NewestFirst || c.N < 0 || c.Part < 0 {
		return place{}, fmt.Errorf("%w: Query.Cursor %.100q: expected that of a Page of %v tasks, read in the same "+
			"order", ErrCursor, q.Cursor, q.State)
	}
	return c.place, nil
}
