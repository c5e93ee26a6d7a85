package document

import (
	"context"
	"time"

	"github.com/godelayed/delayed/inspect"
)

// Depths is how many tasks of a queue were pending, as time went on.
type Depths struct {
	Queue  string  `json:"queue"`
	Per    string  `json:"per"` // second, minute or day; seconds come in tens
	Depths []Depth `json:"depths"`
}

// Depth is how many tasks were pending in ten seconds, a minute or a day.
type Depth struct {
	At      *time.Time `json:"at"`      // when these began, by the clock of Redis
	Pending int        `json:"pending"` // the largest number that was found
}

// ReadDepths reads how many tasks of a queue were pending.
func ReadDepths(ctx context.Context, ins *inspect.Inspector, per Per, q *inspect.Queue) (Depths, error) {
	v := Depths{Queue: q.Name, Per: per.Name, Depths: []Depth{}}
	depths, err := ins.Depths(ctx, q.Name, per.grain, q.At.Add(per.step-per.Last), time.Time{})
	for i := range depths {
		v.Depths = append(v.Depths, Depth{Stamp(depths[i].At), depths[i].Pending})
	}
	return v, err
}
