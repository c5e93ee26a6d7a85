package lifecycle

import "time"

const (
	// MaxDeaths is how many workers may die with nothing but this task in hand before it is archived.
	MaxDeaths = 3
	// DeathLife is how long a death counts.
	DeathLife = 72 * time.Hour
	// ParkedLife is how long a task waits for a worker that can run it. Then it is archived.
	ParkedLife = 7 * 24 * time.Hour
	// ArchivedLife is how long Redis keeps an archived task, unless configured otherwise.
	ArchivedLife = 90 * 24 * time.Hour
	// MaxArchived is how many archived tasks Redis keeps of a queue, unless configured otherwise.
	MaxArchived = 10_000
	// MovingTime is how long nobody else may take an archived task with state.ReasonMoving: it is on its way to another
	// queue.
	MovingTime = time.Minute
)
