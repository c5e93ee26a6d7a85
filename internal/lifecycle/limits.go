package lifecycle

import "time"

const (
	// MaxDeaths is how many workers may die with nothing but this task in hand before it is archived.
	MaxDeaths = 3
	// DeathLife is how long a death counts.
	DeathLife = 72 * time.Hour
	// ParkedLife is how long a task waits for a worker that knows its function before it is archived.
	ParkedLife = 7 * 24 * time.Hour
	// ArchivedLife is how long an archived task is kept, unless the configuration says otherwise.
	ArchivedLife = 90 * 24 * time.Hour
	// MaxArchived is how many archived tasks a queue keeps, unless the configuration says otherwise.
	MaxArchived = 10_000
)
