package delayed

import "fmt"

// WorkerState says what a worker does.
type WorkerState int32

// A worker goes through these in their order, except that it may alternate between running and paused.
const (
	WorkerNew      WorkerState = iota // Run was not called yet, or Redis does not know the worker yet
	WorkerRunning                     // claims tasks
	WorkerPaused                      // claims none until Resume
	WorkerQuiet                       // claims none any more
	WorkerStopping                    // waits for its handlers
	WorkerStopped                     // Run has returned
)

// String returns the state's name.
func (s WorkerState) String() string {
	if s >= 0 && int(s) < len(stateNamesOfWorkers) {
		return stateNamesOfWorkers[s]
	}
	return fmt.Sprintf("WorkerState(%d)", int32(s))
}

var stateNamesOfWorkers = [...]string{"new", "running", "paused", "quiet", "stopping", "stopped"}

// WorkerStatus is a snapshot of a worker, for health checks.
type WorkerStatus struct {
	ID    string // of the worker, 32 hexadecimal digits
	State WorkerState
	// Busy is the number of handlers that run.
	Busy int
	// Connected says that Redis has confirmed the worker's heartbeat on every queue within its life.
	Connected bool
	// StopReason says why the worker stops or has stopped, in one of the words that docs/HOOKS.md lists; "" while it
	// does not.
	StopReason string
}
