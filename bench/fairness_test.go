package main

import (
	"slices"
	"testing"
)

func TestWaitsWhileFree(t *testing.T) {
	// Two executors: one runs a task from 0 to 100, the other from 10 to 20.
	long := span{Number: 0, Long: true, Begin: 0, End: 100}
	for _, tt := range []struct {
		name string
		last span
		want float64
	}{
		{
			"called and begun while both are busy, but for the instant of its begin",
			span{Number: 12, Begin: 20, End: 21},
			0,
		},
		{"waits 5 beside a free executor", span{Number: 30, Begin: 35, End: 36}, 5},
		{"waits over a busy time", span{Number: 5, Begin: 25, End: 26}, 10},
		{"called before anything ran", span{Number: -7, Begin: 3, End: 4}, 10},
	} {
		spans := []span{long, {Number: 10, Long: true, Begin: 10, End: 20}, tt.last}
		if got := waitsWhileFree(spans, 2); !slices.Equal(got, []float64{tt.want}) {
			t.Errorf("%s: %v, expected %v", tt.name, got, tt.want)
		}
	}
}
