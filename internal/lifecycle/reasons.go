package lifecycle

import "time"

// Reasons for archiving a task. Redis keeps them with the task, and events have them.
const (
	ReasonFailed        = "failed"          // no retries are left, or its handler discarded it
	ReasonArguments     = "arguments"       // its arguments do not fit the function
	ReasonExpired       = "expired"         // it was too late to start
	ReasonUndecodable   = "undecodable"     // its bytes are not a message
	ReasonTooLarge      = "too large"       // its message is larger than workers read
	ReasonDeaths        = "deaths"          // its worker died too often, with nothing else in hand
	ReasonByHand        = "by hand"         // somebody has archived it
	ReasonMoving        = "moving"          // somebody moves it to another queue, or did not finish that
	ReasonParkedTooLong = "parked too long" // no worker came that can run it
)

// MovingTime is how long nobody else may take an archived task with ReasonMoving: it is on its way to another queue.
const MovingTime = time.Minute
