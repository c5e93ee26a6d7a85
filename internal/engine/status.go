package engine

import "github.com/godelayed/delayed/state"

// Status is a snapshot of a worker.
type Status struct {
	Phase      state.Worker
	Busy       int    // handlers that run
	Connected  bool   // Redis has confirmed the heartbeat on every queue within its life
	StopReason string // "" while it does not stop
}
