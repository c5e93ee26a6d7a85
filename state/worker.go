package state

import "fmt"

// Worker is the state of a worker.
type Worker int32

// A worker goes through these in their order, except that it may alternate between running and paused.
const (
	New      Worker = iota // Run was not called yet, or Redis does not know the worker yet
	Running                // claims tasks
	Paused                 // claims none until Resume
	Quiet                  // claims none any more
	Stopping               // waits for its handlers
	Stopped                // Run has returned
)

// String returns the state's name.
func (s Worker) String() string {
	if s >= 0 && int(s) < len(workerNames) {
		return workerNames[s]
	}
	return fmt.Sprintf("state.Worker(%d)", int32(s))
}

var workerNames = [...]string{"new", "running", "paused", "quiet", "stopping", "stopped"}
