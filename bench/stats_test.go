package main

import (
	"math"
	"testing"
)

func TestSpread(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   spread
	}{
		{[]float64{3, 1, 2}, spread{2, 1, 3}},
		{[]float64{4, 1, 2, 3}, spread{2.5, 1, 4}},
		{[]float64{7}, spread{7, 7, 7}},
	} {
		if got := spreadOf(tt.values); got != tt.want {
			t.Errorf("%v: %v, expected %v", tt.values, got, tt.want)
		}
	}
	if got := spreadOf(nil); !math.IsNaN(got.Middle) {
		t.Errorf("of nothing: %v", got)
	}
}

func TestQuantile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	for q, want := range map[float64]float64{0: 1, 0.5: 50, 0.99: 99, 0.999: 100, 1: 100} {
		if got := quantile(hundred, q); got != want {
			t.Errorf("%v: %v, expected %v", q, got, want)
		}
	}
	if got := quantile([]float64{5}, 0.99); got != 5 {
		t.Errorf("of one value: %v", got)
	}
}

func TestRatio(t *testing.T) {
	f := &figure{Values: map[string][]float64{"delayed": {100, 200, 300, 1}, "asynq": {10, 10, 20}}}
	if s, ok := f.ratio("delayed", "asynq"); !ok || s != (spread{15, 10, 20}) {
		t.Errorf("%v, %v: expected the median and the range of the rounds' ratios", s, ok)
	}
	f.Less = true
	if s, ok := f.better("asynq"); !ok || math.Abs(s.Middle-1.0/15) > 1e-9 {
		t.Errorf("where less is better: %v, %v", s, ok)
	}
	if _, ok := f.ratio("delayed", "nobody"); ok {
		t.Error("a ratio to nobody")
	}
	f.Values["asynq"] = []float64{0, 0, 0}
	if s, ok := f.ratio("delayed", "asynq"); ok {
		t.Errorf("a ratio to nothing: %v", s)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.00", 0.0123: "0.012", 0.123: "0.12", 9.96: "10", 12.3: "12", 999: "999", 999.7: "1,000", 1234: "1,234",
		1234567: "1,234,567",
	} {
		if got := number(v); got != want {
			t.Errorf("%v: %s, expected %s", v, got, want)
		}
	}
	if got := count(1000); got != "1,000" {
		t.Error(got)
	}
}
