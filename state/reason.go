package state

// Reason is why a task is in its state, or why a worker stops. Programs may compare it with the constants below; later
// versions may add others. The zero value means that no reason is known.
type Reason string

// Reasons why a task is archived.
const (
	ReasonFailed        Reason = "failed"          // no retries are left, or its handler discarded it; see also below
	ReasonArguments     Reason = "arguments"       // its arguments do not fit the function
	ReasonExpired       Reason = "expired"         // its TTL or Deadline was over before it could start
	ReasonUndecodable   Reason = "undecodable"     // its bytes are not a message
	ReasonTooLarge      Reason = "too large"       // its message is larger than workers read
	ReasonDeaths        Reason = "deaths"          // its workers have died of it too often
	ReasonByHand        Reason = "by hand"         // somebody has archived it, by package inspect
	ReasonMoving        Reason = "moving"          // somebody moves it to another queue, or did not finish that
	ReasonParkedTooLong Reason = "parked too long" // no worker that can run it came within seven days
)

// Reasons why a task is parked.
const (
	ReasonUnknownFunction Reason = "unknown function" // the worker does not know the function
	ReasonUnknownFields   Reason = "unknown fields"   // the worker's structs lack fields of the arguments
	ReasonPython          Reason = "python"           // it is a Python task, and the worker has no PythonQueue
	// ReasonPlainPython: the workers of WorkerConfig.PythonQueue do not read the task's extended message.
	ReasonPlainPython Reason = "extended python on a queue for plain ones"
)

// Reasons why a task waits to run again, runs, or is over. One that waits after a failure has ReasonFailed.
const (
	ReasonNotFailed Reason = "not failed" // its handler returned an error that WorkerConfig.IsFailure does not count
	ReasonSnoozed   Reason = "snoozed"    // its handler returned Snooze
	ReasonActive    Reason = "active"     // it runs, and has reported its progress
	ReasonCompleted Reason = "completed"  // it has succeeded
	ReasonDropped   Reason = "dropped"    // its handler returned Drop
	ReasonCanceled  Reason = "canceled"   // it was canceled
)

// Reasons why a worker stops.
const (
	StopContext   Reason = "context"    // the context of Run has ended
	StopClosed    Reason = "closed"     // the handle on Redis was closed
	StopMaxTasks  Reason = "max tasks"  // WorkerConfig.MaxTasks tasks have ended
	StopMaxTime   Reason = "max time"   // the worker has run for WorkerConfig.MaxTime
	StopMaxMemory Reason = "max memory" // the process uses more than WorkerConfig.MaxMemory
	StopEmpty     Reason = "empty"      // the queues are empty: WorkerConfig.StopWhenEmpty, StopWhenEmptyFor
	StopStuck     Reason = "stuck"      // too many handlers are stuck
	StopRestart   Reason = "restart"    // Queue.Restart
	StopOrder     Reason = "order"      // WorkerControl.Stop
	StopSettings  Reason = "settings"   // Redis has come back with settings that lose tasks
)

// Reasons of event.TaskStuck.
const (
	StuckLong     Reason = "long"     // the handler has run for very long
	StuckReplaced Reason = "replaced" // another task may run in its place
	StuckGivenUp  Reason = "given up" // the worker stops because of it
)
