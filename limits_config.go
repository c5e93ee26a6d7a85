package delayed

import (
	"errors"
	"fmt"
	"time"
)

// checkLimits returns what is wrong with the limits of a configuration.
func (c WorkerConfig) checkLimits() error {
	var errs []error
	if c.MaxTasks < 0 {
		errs = append(errs, fmt.Errorf("delayed: WorkerConfig.MaxTasks is %d: expected 1 or more, or 0 for any number",
			c.MaxTasks))
	}
	if c.MaxMemory < 0 || c.MaxMemory > 0 && c.MaxMemory < leastMemory {
		errs = append(errs, fmt.Errorf("delayed: WorkerConfig.MaxMemory is %d: expected a number of bytes of at "+
			"least %d, which is 1 MiB, or 0 for any",
			c.MaxMemory, leastMemory))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"MaxTime", c.MaxTime}, {"StopWhenEmptyFor", c.StopWhenEmptyFor}, {"Rest", c.Rest}} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("delayed: WorkerConfig.%s is %v: expected a duration, or 0 for none", d.name,
				d.value))
		}
	}
	return errors.Join(errs...)
}

// leastMemory is less than any process has: a smaller limit was meant in another unit.
const leastMemory = 1 << 20
