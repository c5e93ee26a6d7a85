// Package media has ten calls that look like mistakes.
package media

import (
	"context"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/handlers"
)

const width = 65_535

type event struct {
	At     time.Time
	Client string
	_      struct{}
}

type fields = map[string]any

type upload []byte

func thumbnails(ctx context.Context, q *delayed.Queue, raw string, w int, box any) ([]*delayed.Ref, error) {
	return q.DelayMany(ctx,
		delayed.Call(handlers.Thumbnail, "a.png", width, 'x'),
		delayed.Call(handlers.Thumbnail, "a.png", w, w+1),
		delayed.Call(handlers.Upload, "a.png", []byte(raw), nil),
		delayed.Call(handlers.Upload, "a.png", upload(raw), map[string]string{"a": "b"}),
		delayed.Call(handlers.Track, "x", fields{"n": 1}),
		delayed.Call(handlers.Log, "x", nil, 1, 2.5, []int{1}),
		delayed.Call(handlers.Log, event{At: time.Now(), Client: raw}),
		delayed.Call(handlers.Look, handlers.Visit{User: 1}),
		delayed.Call(handlers.Log, box, &event{}),
		delayed.Call(handlers.Rate, box, "good"),
	)
}
