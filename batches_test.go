package delayed_test

import (
	"errors"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redisstore"
)

// TestSizesOfBatches: as many tasks as one call of DelayMany accepts together, by their options.
func TestSizesOfBatches(t *testing.T) {
	for name, test := range map[string]struct {
		option delayed.Option
		script string
		size   int
	}{
		"plain":     {delayed.MaxRetry(3), "enqueue", redisstore.MaxBatchTasks},
		"scheduled": {delayed.In(time.Hour), "schedule", redisstore.MaxFiled},
		"grouped":   {delayed.Group("g"), "gather", redisstore.MaxFiled},
		"unique":    {delayed.Unique(time.Hour), "enlist", redisstore.MaxEnlisted},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			f := b.fn("f", func(...int) {})
			tasks := make([]*delayed.Task, test.size+1)
			for i := range tasks {
				tasks[i] = delayed.Call(f, i)
			}
			requests, called := 0, calls(redisstore.Scripts[test.script])
			rdb, _ := b.faulty(faultnet.Once(faultnet.DropRequest, func(request []byte) bool {
				if called(request) {
					requests++
				}
				return requests == 2
			}))
			_, err := delayed.NewQueue(b.Name, rdb).With(test.option).DelayMany(t.Context(), tasks...)
			var batch *delayed.BatchError
			if !errors.As(err, &batch) || batch.Sent != test.size {
				t.Errorf("expected that the first request has %d tasks, found %v", test.size, err)
			}
		})
	}
}
