package fetch

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

// Arrange fills positions with the indexes of the queues in the order of one round: as listed, or drawn by weight.
func (p *Order) Arrange(positions []int) {
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

// Reweigh sets the weight of each queue i to of(i), or to the configured weight if that is 0.
func (p *Order) Reweigh(of func(i int) int) {
	if p.Weights == nil {
		return
	}
	p.Total = 0
	for i := range p.Weights {
		p.Weights[i] = cmp.Or(of(i), p.Configured[i])
		p.Total += p.Weights[i]
	}
}

// MostNamed bounds the queues that String names. A worker writes the text to Redis for each of its queues: with ten
// thousand, all names would be hundreds of megabytes.
const MostNamed = 100

// String returns the order as configured: "critical, mail (strict)" or "critical=6, mail=3 (weighted)". It counts the
// queues after the first hundred.
func (p *Order) String() string {
	var items []string
	for i, name := range p.Names[:min(len(p.Names), MostNamed)] {
		if p.Configured != nil {
			name = fmt.Sprintf("%s=%d", name, p.Configured[i])
		}
		items = append(items, name)
	}
	if more := len(p.Names) - len(items); more > 0 {
		items = append(items, fmt.Sprintf("… and %d more", more))
	}
	if p.Configured == nil {
		return strings.Join(items, ", ") + " (strict)"
	}
	return strings.Join(items, ", ") + " (weighted)"
}
