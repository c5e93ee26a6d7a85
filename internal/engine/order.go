package engine

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Order is in which order a worker looks at its queues, prepared for use.
type Order struct {
	Names   []string
	Weights []int // nil: strict order
	Total   int   // of Weights
	// Configured are the weights before control hashes have changed them.
	Configured []int
}

// arrange fills positions with the indexes of the queues in the order of one round: as listed, or drawn by weight.
func (p *Order) arrange(positions []int) {
	for i := range positions {
		positions[i] = i
	}
	if p.Weights == nil {
		return
	}
	total := p.Total
	for i := range positions {
		j, pick := i, rand.IntN(total)
		for pick >= p.Weights[positions[j]] {
			pick -= p.Weights[positions[j]]
			j++
		}
		positions[i], positions[j] = positions[j], positions[i]
		total -= p.Weights[positions[i]]
	}
}

// reweigh sets the weight of each queue i to of(i), or to the configured weight if that is 0.
func (p *Order) reweigh(of func(i int) int) {
	if p.Weights == nil {
		return
	}
	p.Total = 0
	for i := range p.Weights {
		p.Weights[i] = cmp.Or(of(i), p.Configured[i])
		p.Total += p.Weights[i]
	}
}

// String returns the order as configured: "critical, mail (strict)" or "critical=6, mail=3 (weighted)".
func (p *Order) String() string {
	if p.Configured == nil {
		return strings.Join(p.Names, ", ") + " (strict)"
	}
	items := make([]string, len(p.Names))
	for i, name := range p.Names {
		items[i] = fmt.Sprintf("%s=%d", name, p.Configured[i])
	}
	return strings.Join(items, ", ") + " (weighted)"
}
