package delayed

import (
	"crypto/rand"
	"encoding/hex"
)

// newWorkerID returns 128 random bits. Claims are filed under it, so two workers must never share one.
func newWorkerID() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails, says its documentation
	return hex.EncodeToString(random[:])
}
