package wire

import (
	"crypto/rand"
	"encoding/hex"
	mrand "math/rand/v2"
)

// MaxTaskID is the longest task id that a caller may choose, in bytes.
const MaxTaskID = 256

// idAlphabet is Crockford's base 32: digits and letters without i, l, o and u.
const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// TaskIDText is a random task id: 120 bits as 24 characters.
type TaskIDText [24]byte

// Fill makes a new id. The runtime's random generator is a cipher (ChaCha8), which the operating system seeds for each
// process and each thread: ids are unique across processes, and nobody can guess one.
func (t *TaskIDText) Fill() {
	const half = len(t) / 2
	a, b := mrand.Uint64(), mrand.Uint64()
	for i := range half {
		t[i], t[half+i] = idAlphabet[a&31], idAlphabet[b&31]
		a, b = a>>5, b>>5
	}
}

// NewTaskID returns a random task id.
func NewTaskID() string {
	var text TaskIDText
	text.Fill()
	return string(text[:])
}

// NewWorkerID returns 128 random bits in hexadecimal. Redis keys contain the id, so two workers must never share one.
func NewWorkerID() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // it is documented never to fail
	return hex.EncodeToString(random[:])
}
