package finish

import (
	"testing"
	"time"
)

func TestDefaultBackoffGrowsToSixHours(t *testing.T) {
	for n, want := range map[int]time.Duration{
		-1: 5 * time.Second, 0: 5 * time.Second, 1: 10 * time.Second, 5: 160 * time.Second, 12: 20480 * time.Second,
		13:   6 * time.Hour,
		1000: 6 * time.Hour,
	} {
		low, high := time.Duration(1<<62), time.Duration(0)
		for range 2000 {
			d := DefaultBackoff(n)
			low, high = min(low, d), max(high, d)
		}
		if low < want*3/4 || high > want*5/4 || low > want*4/5 || high < want*6/5 {
			t.Errorf("after %d retries: %v to %v, expected %v ± 25 %%", n, low, high, want)
		}
	}
}
