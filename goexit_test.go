package delayed_test

import "runtime"

// exitGoroutine ends the goroutine as testing's FailNow does.
func exitGoroutine() { runtime.Goexit() }
