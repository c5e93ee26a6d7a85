package delayed

// phase says where a worker is in its life.
type phase int32

// A worker goes through these in their order, except that it may alternate between running and paused.
const (
	phaseNew phase = iota // Run was not called yet, or Redis does not know the worker yet
	phaseRunning
	phasePaused
	phaseQuiet
	phaseStopping
	phaseStopped
)

// status is a snapshot of a worker.
type status struct {
	Phase      phase
	Busy       int    // handlers that run
	Connected  bool   // Redis has confirmed the heartbeat on every queue within its life
	StopReason string // "" while it does not stop
}
