package semaphore

import (
	"testing"
	"time"
)

// TestLeaseBeginsWhenRedisIsAsked gets a place by an answer that came late: Redis may count its lease from when it was
// asked.
func TestLeaseBeginsWhenRedisIsAsked(t *testing.T) {
	p := &Place{sem: &Semaphore{cfg: Config{Lease: time.Hour}}}
	asked := time.Now().Add(-10 * time.Minute)
	p.keep(asked)
	defer p.renewal.Stop()
	if !p.ends.Equal(asked.Add(time.Hour)) {
		t.Errorf("the lease ends %v after Redis was asked, expected an hour", p.ends.Sub(asked))
	}
}
