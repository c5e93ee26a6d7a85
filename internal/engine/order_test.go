package engine

import (
	"testing"
)

// TestReweigh counts who comes first.
func TestReweigh(t *testing.T) {
	t.Parallel()
	p := Weighted{"a": 1, "b": 999}.plan()
	first := func(weights ...int) (a int) {
		p.reweigh(func(i int) int { return weights[i] })
		order := make([]int, 2)
		for range 1000 {
			p.arrange(order)
			if order[0] == 0 {
				a++
			}
		}
		return a
	}
	if n := first(0, 0); n > 50 {
		t.Errorf("a of weight 1 beside 999 was first %d times of 1,000", n)
	}
	if n := first(1000, 1); n < 950 {
		t.Errorf("a of weight 1,000 beside 1 was first %d times of 1,000", n)
	}
	if n := first(1000, 1000); n < 350 || n > 650 {
		t.Errorf("a of the same weight was first %d times of 1,000", n)
	}
	if n := first(0, 0); n > 50 {
		t.Errorf("a, as configured again, was first %d times of 1,000", n)
	}
	strict := Strict{"a", "b"}.plan()
	strict.reweigh(func(int) int { return 7 })
	if strict.Weights != nil {
		t.Error("a strict order has weights")
	}
}
