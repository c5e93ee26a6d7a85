package catalog

// Broadcast is what a worker publishes while somebody watches a queue.
type Broadcast struct {
	Version int    `json:"version"`
	Worker  string `json:"worker"`
	Missed  int    `json:"missed,omitempty"` // events just before these that were too many to be published
	// Since is when the worker was asked for events and had not been asked before, in ms since 1970, and Before how
	// many it has had since then before these, published or not. So who watches knows what was lost on the way.
	Since  int64   `json:"since"`
	Before int     `json:"before"`
	Events []Event `json:"events"`
}

// Event is something that has happened in a worker.
type Event struct {
	Kind     string `json:"kind"` // as event.Kind writes it
	At       int64  `json:"at"`   // ms since 1970
	ID       string `json:"id,omitempty"`
	Function string `json:"function,omitempty"`
	Attempt  int    `json:"attempt,omitempty"`
	Took     int64  `json:"took,omitempty"` // how long the handler ran, µs
	Wait     int64  `json:"wait,omitempty"` // until it is tried again, or since it was enqueued, ms
	Reason   string `json:"reason,omitempty"`
	Error    string `json:"error,omitempty"`
}
