//go:build unix

package sourcetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// rounds is how often each source is measured, in turn with the other.
const rounds = 7

// Compare measures the source beside redigo's pool of delayed.Dial, in turns, and reports the medians of the tasks per
// second as shares of those of redigo: 1.00 is as fast. It takes the same time whatever b.N is.
func Compare(b *testing.B, open Maker) {
	server := redistest.Shared(b)
	dialled, err := delayed.Dial(server.URL())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { dialled.Close() })
	own := delayed.FromSource(open(b, server.Addr(), 100))
	b.Cleanup(func() { own.Close() })
	for _, load := range []struct {
		name string
		run  func(b *testing.B, rdb *delayed.Store, queue string) time.Duration
	}{
		{"enqueue-1", func(b *testing.B, rdb *delayed.Store, queue string) time.Duration {
			return enqueue(b, rdb, queue, 1, 3000)
		}},
		{"enqueue-64", func(b *testing.B, rdb *delayed.Store, queue string) time.Duration {
			return enqueue(b, rdb, queue, 64, 300)
		}},
		{"drain", drain},
	} {
		var redigo, other []time.Duration
		for i := range rounds {
			queue := fmt.Sprint(redistest.Name(b), i)
			redigo = append(redigo, load.run(b, dialled, queue))
			other = append(other, load.run(b, own, queue))
			server.Do(b, "DEL", queue, queue+"_noti")
		}
		slices.Sort(redigo)
		slices.Sort(other)
		b.ReportMetric(float64(redigo[rounds/2])/float64(other[rounds/2]), load.name+"/redigo")
	}
	b.ReportMetric(0, "ns/op")
}

// enqueue returns how long so many goroutines take to enqueue so many tasks each.
func enqueue(b *testing.B, rdb *delayed.Store, queue string, producers, each int) time.Duration {
	b.Helper()
	q := delayed.NewQueue(queue, rdb)
	start := time.Now()
	var wg sync.WaitGroup
	for range producers {
		wg.Go(func() {
			for range each {
				if _, err := q.DelayContext(b.Context(), Nothing); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// Nothing is the task of Compare.
func Nothing() {}

// drain returns how long a worker takes for 30,000 tasks.
func drain(b *testing.B, rdb *delayed.Store, queue string) time.Duration {
	b.Helper()
	const tasks = 30_000
	enqueue(b, rdb, queue, 10, tasks/10)
	q := delayed.NewQueue(queue, rdb)
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{queue}, Concurrency: 16, Logger: new(redistest.Log).Logger(),
	})
	if err == nil {
		err = w.Register(Nothing)
	}
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	result := make(chan error, 1)
	start := time.Now()
	go func() { result <- w.Run(ctx) }()
	for left := 1; left > 0; {
		<-time.After(time.Millisecond)
		if left, err = q.Len(ctx); err != nil {
			b.Fatal(err)
		}
	}
	took := time.Since(start)
	cancel()
	if err := <-result; err != nil {
		b.Error(err)
	}
	return took
}
