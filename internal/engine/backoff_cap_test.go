package engine

import (
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// MaxBackoff of a call replaces that of the function, also where it is longer.
func TestMaxBackoffOfTheCallWins(t *testing.T) {
	for of, want := range map[time.Duration]time.Duration{
		0:                     time.Second,
		30 * time.Millisecond: 30 * time.Millisecond,
		time.Minute:           time.Minute,
		2 * time.Hour:         time.Hour,
	} {
		j := trial{
			opts:  []FuncOption{MaxBackoff(time.Second)},
			extra: &wire.Extra{RetryDelays: []int64{time.Hour.Milliseconds()}, RetryCap: of.Milliseconds()},
			err:   errJudged,
		}
		if e, _, _ := j.judge(t); e.Wait != want {
			t.Errorf("MaxBackoff(%v) at the call, 1s at the function: waits %v, expected %v", of, e.Wait, want)
		}
	}
}
