package delayed

import (
	"errors"
	"fmt"
	"maps"
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
