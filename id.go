package delayed

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	mrand "math/rand/v2"
)

// maxTaskID bounds an id given by the caller, in bytes.
const maxTaskID = 256

var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// newTaskID returns 120 random bits as 24 characters without i, l, o and u. The runtime's generator is seeded for each process
// and each thread, and ids need to be unique, not secret.
func newTaskID() string {
	var random [16]byte
	binary.LittleEndian.PutUint64(random[:8], mrand.Uint64())
	binary.LittleEndian.PutUint64(random[8:], mrand.Uint64())
	var text [24]byte
	idEncoding.Encode(text[:], random[:15])
	return string(text[:])
}

// newWorkerID returns 128 random bits. Claims are filed under it, so two workers must never share one.
func newWorkerID() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails, says its documentation
	return hex.EncodeToString(random[:])
}
