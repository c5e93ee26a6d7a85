package delayed_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/godelayed/delayed"
)

// BenchmarkAwait measures the time from the end of a function to the return of Await in another goroutine that has been
// waiting: p50-us and p99-us.
func BenchmarkAwait(b *testing.B) {
	for _, waiters := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("waiters=%d", waiters), func(b *testing.B) {
			env := newBench(b)
			open := make(chan struct{})
			f := env.fn("f", func() int64 {
				<-open
				return time.Now().UnixNano()
			}, delayed.KeepResult(time.Minute))
			cfg := env.config()
			cfg.Concurrency = waiters
			w := env.work(cfg, f)
			var all []time.Duration
			var mu sync.Mutex
			b.ResetTimer()
			for done := 0; done < b.N; done += waiters {
				var waiting sync.WaitGroup
				refs := make([]*delayed.Ref, min(waiters, b.N-done))
				for i := range refs {
					refs[i] = env.delay(f)
				}
				for _, ref := range refs {
					waiting.Go(func() {
						end, err := delayed.Await[int64](b.Context(), ref)
						took := time.Duration(time.Now().UnixNano() - end)
						if err != nil {
							b.Error(err)
						}
						mu.Lock()
						all = append(all, took)
						mu.Unlock()
					})
				}
				env.Until("all have subscribed", func() bool {
					return !slices.ContainsFunc(refs, func(r *delayed.Ref) bool { return env.subscribed(r.ID()) == 0 })
				})
				for range refs {
					open <- struct{}{}
				}
				waiting.Wait()
			}
			b.StopTimer()
			w.mustStop()
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
			b.ReportMetric(0, "ns/op")
			env.Do("UNLINK", env.Name+"_results", env.Name+"_completed")
		})
	}
}
