package catalog

// Status is what a worker says of itself on one of its queues.
type Status struct {
	Version     int       `json:"version"`
	Started     int64     `json:"started"` // ms since 1970
	Library     string    `json:"library"` // version
	Program     string    `json:"program"` // version and revision
	Concurrency int       `json:"concurrency"`
	Queues      string    `json:"queues"`           // its order of queues, for people
	State       string    `json:"state"`            // as state.Worker writes it
	Memory      int64     `json:"memory,omitempty"` // bytes of the process, about; 0: unknown
	Running     []Running `json:"running,omitempty"`
	More        int       `json:"more,omitempty"` // how many running tasks did not fit
}

// Running is a task that has run for a while.
type Running struct {
	Token    string `json:"token"`
	ID       string `json:"id,omitempty"`
	Function string `json:"function"`
	Started  int64  `json:"started"` // ms since 1970
}
