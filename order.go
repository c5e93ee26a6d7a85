package delayed

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/godelayed/delayed/internal/engine"
	"github.com/godelayed/delayed/internal/redisstore"
)

// QueueOrder says which queues a worker serves and in which order it looks at them: Strict or Weighted.
type QueueOrder interface {
	plan() (engine.Order, error)
}

// Strict serves queues by priority: a task of a later queue is claimed only when the earlier ones are empty.
type Strict []string

func (s Strict) plan() (engine.Order, error) {
	return engine.Order{Names: slices.Clone(s)}, checkNames(s)
}

// Weighted serves queues at random, each as often as its weight says while all have tasks; no queue starves. Weights
// are 1 to 1000; Queue.SetWeight changes them while workers run.
type Weighted map[string]int

func (w Weighted) plan() (engine.Order, error) {
	p := engine.Order{Names: slices.Sorted(maps.Keys(w))}
	errs := []error{checkNames(p.Names)}
	for _, name := range p.Names {
		weight := w[name]
		if weight < 1 || weight > engine.MaxWeight {
			errs = append(errs, fmt.Errorf("delayed: queue %q has weight %d: expected 1 to %d", name, weight,
				engine.MaxWeight))
		}
		p.Weights = append(p.Weights, weight)
		p.Total += weight
	}
	p.Configured = slices.Clone(p.Weights)
	return p, errors.Join(errs...)
}

// checkNames returns everything that is wrong with the names of a worker's queues.
func checkNames(names []string) error {
	if len(names) == 0 {
		return errors.New("delayed: no queues: name at least one, as in Strict{\"mail\"}")
	}
	var errs []error
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			errs = append(errs, fmt.Errorf("delayed: queue %q is named twice", name))
			continue
		}
		errs = append(errs, redisstore.CheckQueueName(name))
	}
	return errors.Join(errs...)
}
