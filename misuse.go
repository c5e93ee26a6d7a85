package delayed

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors of handles that no constructor has made. Methods that return no error panic with them.
var (
	errNilContext = errors.New("delayed: the context is nil: pass context.Background() where there is no other")
)

// must panics with err unless it is nil, in functions that return no error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// checkContext returns an error if there is no context.
func checkContext(ctx context.Context) error {
	if ctx == nil {
		return errNilContext
	}
	return nil
}

// tooShort finds durations that were probably meant in another unit, such as Retention(60000), which is 60 µs. want
// says what was expected.
func tooShort(d time.Duration) (want string, wrong bool) {
	return "at least 1ms, or a unit such as time.Second behind the number", d > 0 && d < time.Millisecond
}

// checkDuration is tooShort for a field of a configuration.
func checkDuration(field string, d time.Duration) error {
	if want, wrong := tooShort(d); wrong {
		return fmt.Errorf("delayed: %s is %v: expected %s", field, d, want)
	}
	return nil
}
