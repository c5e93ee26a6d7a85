package lifecycle

import "time"

const (
	// MaxDeaths is the number of worker deaths after which a task is archived. Only deaths count where it was the
	// worker's only task.
	MaxDeaths = 3
	// DeathLife is how long a death counts.
	DeathLife = 72 * time.Hour
	// ParkedLife is how long a task waits for a worker that can run it. Then it is archived.
	ParkedLife = 7 * 24 * time.Hour
	// ArchivedLife is how long Redis keeps an archived task, unless configured otherwise.
	ArchivedLife = 90 * 24 * time.Hour
	// MaxArchived is how many archived tasks Redis keeps of a queue, unless configured otherwise.
	MaxArchived = 10_000
)
