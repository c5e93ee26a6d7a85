// Package setup does not compile itself, and package app imports it.
package setup

import "github.com/godelayed/delayed"

type Servers struct {
	Main *delayed.Redis // want `expected Store, found Redis`
	Jobs *delayed.Worker
}

func Dial() (*delayed.Redis, error) { // want `expected Store, found Redis`
	return delayed.Dial("")
}
