package delayed

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"
)

// orderPlan is an order made ready for use.
type orderPlan struct {
	names   []string
	weights []int // nil: strict
	total   int
	// configured are the weights before any change.
	configured []int
}

// arrange puts the positions of names into the order of one round.
func (p *orderPlan) arrange(positions []int) {
	for i := range positions {
		positions[i] = i
	}
	if p.weights == nil {
		return
	}
	total := p.total
	for i := range positions {
		j, pick := i, rand.IntN(total)
		for pick >= p.weights[positions[j]] {
			pick -= p.weights[positions[j]]
			j++
		}
		positions[i], positions[j] = positions[j], positions[i]
		total -= p.weights[positions[i]]
	}
}

// reweigh gives each queue the weight that of returns for its position, or the configured one where that is 0.
func (p *orderPlan) reweigh(of func(i int) int) {
	if p.weights == nil {
		return
	}
	p.total = 0
	for i := range p.weights {
		p.weights[i] = cmp.Or(of(i), p.configured[i])
		p.total += p.weights[i]
	}
}

// String returns the order as it is configured: "critical, mail (strict)" or "critical=6, mail=3 (weighted)".
func (p *orderPlan) String() string {
	if p.configured == nil {
		return strings.Join(p.names, ", ") + " (strict)"
	}
	items := make([]string, len(p.names))
	for i, name := range p.names {
		items[i] = fmt.Sprintf("%s=%d", name, p.configured[i])
	}
	return strings.Join(items, ", ") + " (weighted)"
}
