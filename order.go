package delayed

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/godelayed/delayed/internal/redisstore"
)

// QueueOrder says which queues a worker serves and in which order it looks at them: Strict or Weighted.
type QueueOrder interface {
	plan() (orderPlan, error)
}

// Strict serves queues by priority: a task of a later queue is claimed only when the earlier ones are empty.
type Strict []string

func (s Strict) plan() (orderPlan, error) { return orderPlan{names: slices.Clone(s)}, checkNames(s) }

// Weighted serves queues at random, each as often as its weight says while all have tasks; no queue starves. Weights
// are 1 to 1000; Queue.SetWeight changes them while workers run.
type Weighted map[string]int

func (w Weighted) plan() (orderPlan, error) {
	var p orderPlan
	p.names = slices.Sorted(maps.Keys(w))
	for _, name := range p.names {
		weight := w[name]
		if weight < 1 || weight > maxWeight {
			return p, fmt.Errorf("delayed: queue %q has weight %d: expected 1 to %d", name, weight, maxWeight)
		}
		p.weights = append(p.weights, weight)
		p.total += weight
	}
	p.configured = slices.Clone(p.weights)
	return p, checkNames(p.names)
}

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

func checkNames(names []string) error {
	if len(names) == 0 {
		return errors.New("delayed: no queues: name at least one, as in Strict{\"mail\"}")
	}
	for i, name := range names {
		if err := redisstore.CheckQueueName(name); err != nil {
			return err
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("delayed: queue %q is named twice", name)
		}
	}
	return nil
}
