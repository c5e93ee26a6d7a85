package metrics

import (
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Each duration is below the bound of its bucket and not below that of the one before.
func TestBuckets(t *testing.T) {
	durations := []time.Duration{-1, 0, 1, time.Microsecond, time.Hour, 49 * 24 * time.Hour}
	for us := range 5000 {
		durations = append(durations, time.Duration(us)*time.Microsecond)
	}
	for _, d := range durations {
		i := bucketOf(d)
		if d >= Bound(i) || i > 0 && d.Truncate(time.Microsecond) < Bound(i-1) {
			t.Errorf("%v is in bucket %d, %v to %v", d, i, Bound(i-1), Bound(i))
		}
	}
	for i := 5; i < Buckets; i++ {
		if low, high := Bound(i-1), Bound(i); high <= low || high > low+low/4 {
			t.Errorf("bucket %d is from %v to %v: expected at most a quarter more", i, low, high)
		}
	}
	if i := bucketOf(1 << 62); i != Buckets-1 {
		t.Errorf("a century is in bucket %d, expected the last", i)
	}
}

// Quantiles are within the width of a bucket of the true ones.
func TestQuantiles(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var h Histogram
	if q := h.Quantile(0.5); q != 0 {
		t.Errorf("half of nothing lies below %v", q)
	}
	all := make([]time.Duration, 10_000)
	for i := range all {
		all[i] = time.Duration(rnd.ExpFloat64() * float64(20*time.Millisecond))
		h.Add(all[i])
	}
	slices.Sort(all)
	for _, q := range []float64{0.01, 0.5, 0.95, 0.99} {
		want, got := all[int(q*float64(len(all)))], h.Quantile(q)
		if got < want*3/4 || got > want*5/4 {
			t.Errorf("quantile %v: %v, expected about %v", q, got, want)
		}
	}
	if low, high := h.Quantile(0), h.Quantile(1); low > all[0] || high < all[len(all)-1] {
		t.Errorf("all lie from %v to %v, expected at least from %v to %v", low, high, all[0], all[len(all)-1])
	}
	limits := []time.Duration{0, 1 << 14 * time.Microsecond, 20 * time.Millisecond, time.Hour}
	for i, n := range h.Below(limits) {
		want, _ := slices.BinarySearch(all, limits[i])
		if slack := want / 20; i != 2 && n != uint64(want) || n < uint64(want-slack) || n > uint64(want+slack) {
			t.Errorf("%d lie below %v, expected %d", n, limits[i], want)
		}
	}
	if n := h.Count(); n != 10_000 {
		t.Errorf("%d durations", n)
	}
}

func TestEncodedSamples(t *testing.T) {
	var a, b Sample
	a.Runs, a.Failed, a.Archived = 5, 2, 1
	for _, d := range []time.Duration{0, time.Millisecond, time.Millisecond, time.Hour} {
		a.Wait.Add(d)
		b.Run.Add(d)
	}
	b.Runs = 300
	raw := a.Append(nil)
	sum := b
	if err := sum.MergeEncoded(raw); err != nil {
		t.Fatal(err)
	}
	want := b
	want.Merge(&a)
	if sum != want || sum.Runs != 305 || sum.Wait.Sum != time.Hour+2*time.Millisecond || sum.Wait.Count() != 4 {
		t.Errorf("found %+v, expected %+v", sum, want)
	}
	for n := range raw {
		if err := sum.MergeEncoded(raw[:n]); err == nil {
			t.Errorf("the first %d of %d bytes count as a sample", n, len(raw))
		}
	}
	for _, bad := range [][]byte{
		append(slices.Clone(raw), 0), append([]byte{2}, raw[1:]...),
		{1, 0, 0, 0, 0, 1, 200, 1, 1, 0, 0},
		{1, 0, 0, 0, 0, 2, 167, 1, 1, 1, 1, 0, 0},
		{1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0, 0, 0, 0, 0, 0},
	} {
		if err := sum.MergeEncoded(bad); err == nil {
			t.Errorf("% x counts as a sample", bad)
		}
	}
	if sum != want {
		t.Error("a malformed sample changed the sum")
	}
}

// TestBytesOfASample is in the Python package too.
func TestBytesOfASample(t *testing.T) {
	var s Sample
	s.Runs, s.Failed, s.Archived = 300, 2, 1
	for _, d := range []time.Duration{
		0, 3 * time.Microsecond, time.Millisecond, time.Millisecond, time.Hour, 60 * 24 * time.Hour,
	} {
		s.Wait.Add(d)
	}
	s.Run.Add(-time.Second)
	s.Run.Add(1500 * time.Microsecond)
	want := "01ac020201d3d7b8a8fd96010500010301200257012a01dc0b0200012501"
	if got := hex.EncodeToString(s.Append(nil)); got != want {
		t.Errorf("found %s, expected %s", got, want)
	}
}

func FuzzMergeEncoded(f *testing.F) {
	var s Sample
	s.Run.Add(time.Second)
	f.Add(s.Append(nil))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var s, again Sample
		if s.MergeEncoded(raw) != nil {
			return
		}
		if err := again.MergeEncoded(s.Append(nil)); err != nil || again != s {
			t.Errorf("%+v became %+v, %v", s, again, err)
		}
	})
}
