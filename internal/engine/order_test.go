package engine

import (
	"strings"
	"testing"

	"github.com/godelayed/delayed/internal/engine/fetch"
)

// TestReweigh counts who comes first.
func TestReweigh(t *testing.T) {
	t.Parallel()
	p := Weighted{"a": 1, "b": 999}.plan()
	first := func(weights ...int) (a int) {
		p.Reweigh(func(i int) int { return weights[i] })
		order := make([]int, 2)
		for range 1000 {
			p.Arrange(order)
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
	strict.Reweigh(func(int) int { return 7 })
	if strict.Weights != nil {
		t.Error("a strict order has weights")
	}
}

// TestManyQueuesAreCounted: a text about ten thousand queues is not as long as their names, because each queue gets it.
func TestManyQueuesAreCounted(t *testing.T) {
	p := fetch.Order{Names: make([]string, fetch.MostNamed+2)}
	for i := range p.Names {
		p.Names[i] = "q"
	}
	if got, end := p.String(), "q, … and 2 more (strict)"; !strings.HasSuffix(got, end) ||
		strings.Count(got, "q") != fetch.MostNamed {
		t.Errorf("found %q, expected %d names and %q", got, fetch.MostNamed, end)
	}
}
