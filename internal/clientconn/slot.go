package clientconn

import "github.com/mna/redisc"

// Slot returns the hash slot of key.
func Slot(key string) int { return redisc.Slot(key) }
