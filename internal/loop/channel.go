package loop

import "time"

// Await reports whether done closes within d.
func Await(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
}

// Drain removes the element of a channel of one, if there is one. It never blocks.
func Drain(c <-chan struct{}) {
	select {
	case <-c:
	default:
	}
}

// Poke puts an element into a channel that has room for one, unless there is one. It never blocks.
func Poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
