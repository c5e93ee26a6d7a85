package engine

// Phase says where a worker is in its life.
type Phase int32

// A worker goes through these in their order, except that it may alternate between running and paused.
const (
	phaseNew Phase = iota // Run was not called yet, or Redis does not know the worker yet
	phaseRunning
	phasePaused
	phaseQuiet
	phaseStopping
	phaseStopped
)

// Status is a snapshot of a worker.
type Status struct {
	Phase      Phase
	Busy       int    // handlers that run
	Connected  bool   // Redis has confirmed the heartbeat on every queue within its life
	StopReason string // "" while it does not stop
}
