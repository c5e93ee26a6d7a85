package engine

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Order is an order made ready for use.
type Order struct {
	Names   []string
	Weights []int // nil: strict
	Total   int
	// Configured are the weights before any change.
	Configured []int
}

// arrange puts the positions of names into the order of one round.
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

// reweigh gives each queue the weight that of returns for its position, or the configured one where that is 0.
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

// String returns the order as it is configured: "critical, mail (strict)" or "critical=6, mail=3 (weighted)".
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
