package inspect

import (
	"slices"
	"testing"
	"time"
)

func TestSeriesOf(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int, function string, runs, failed uint64) Sample {
		when := from.Add(time.Duration(seconds) * time.Second)
		return Sample{At: when, Function: function, Runs: runs, Failed: failed}
	}
	s := SeriesOf([]Sample{
		at(-1, "a", 100, 0), at(0, "a", 1, 1), at(59, "b", 2, 0), at(60, "a", 4, 0), at(179, "a", 8, 2),
		at(180, "a", 100, 0),
	}, from, time.Minute, 3)
	a, b, sum := s.Functions["a"], s.Functions["b"], s.Sum()
	if len(s.Functions) != 2 || !slices.Equal(a.Runs, []uint64{1, 4, 8}) ||
		!slices.Equal(a.Failed, []uint64{1, 0, 2}) || !slices.Equal(b.Runs, []uint64{2, 0, 0}) ||
		a.Sum.Runs != 13 || b.Sum.Runs != 2 {
		t.Errorf("expected a with 1, 4, 8 runs and b with 2, 0, 0, found %+v and %+v", a, b)
	}
	if sum.Runs != 15 || sum.Failed != 3 || s.Buckets[0].Runs != 3 {
		t.Errorf("expected 15 runs, 3 failed, 3 runs at first, found %+v, %+v", sum, s.Buckets[0])
	}
}
