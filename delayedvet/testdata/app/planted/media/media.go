// Package media has ten mistakes.
package media

import (
	"context"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/handlers"
)

const width = 70_000

type event struct {
	At     time.Time
	client string
}

func thumbnails(ctx context.Context, q *delayed.Queue, raw string, done chan<- bool) ([]*delayed.Ref, error) {
	refs, err := q.DelayMany(ctx,
		delayed.Call(handlers.Thumbnail, "a.png", width, 100),      // want `argument 2: expected uint16, found int 70000`
		delayed.Call(handlers.Thumbnail, "a.png", 100.0, 100),      // want `argument 2: expected uint16, found float64 100`
		delayed.Call(handlers.Upload, "a.png", raw, nil),           // want `argument 2: expected \[\]byte, found string`
		delayed.Call(handlers.Upload, "a.png", nil, []string{"x"}), // want `argument 3: expected map\[string\]string, found \[\]string`
		delayed.Call(handlers.Track, "x", map[string]string{}),     // want `argument 2: expected map\[string\]any, found map\[string\]string`
		delayed.Call(handlers.Log, "x", done),                      // want `argument 2: expected a value that can travel, found another: chan<- bool`
		delayed.Call(handlers.Log, event{time.Now(), raw}),         // want `argument 1: expected a value that travels whole: field client of media.event`
		delayed.Call(handlers.Notify, done),                        // want `chan<- bool cannot travel in a task`
		delayed.Call(handlers.Transform, 1i),                       // want `complex64 cannot travel in a task: send its two parts as floats`
	)
	if err != nil {
		return nil, err
	}
	go q.Delay(handlers.Thumbnail, "b.png", 1, 1) // want `error of Delay`
	return refs, nil
}
