// Package wire turns task messages and the values in them into MessagePack and back. It is the only package that knows
// the bytes; docs/PROTOCOL.md describes them and testdata/wire holds examples that Go and Python both read.
//
// Bytes from Redis are hostile until checked. Check and Parse go through bytes without recursion and without
// allocating; a Codec then checks a value against its Go type, counts the memory that it will take, and only then
// builds it. No input makes this package panic, overflow the stack, or allocate more than 64 bytes for each byte of
// input and 64 KiB.
package wire

// Limits bounds a message. The zero value allows nothing: start from Default.
type Limits struct {
	Bytes int // length of the message
	// values in it, containers and map keys included; the payload, being binary, is one, and its own are counted anew
	Elems int
	Depth int // arrays and maps inside one another, those of the payload counted anew; never more than 63
	Path  int // length of a function path and of a task id, in bytes
}

// The limits of the protocol. Raising them in one process makes messages that the others archive as malformed.
const (
	maxBytes = 1 << 20
	maxElems = 65536
	maxDepth = 32
	maxPath  = 512
)

// Default are the limits of producers and workers. Codecs apply them even if this variable is changed.
var Default = Limits{Bytes: maxBytes, Elems: maxElems, Depth: maxDepth, Path: maxPath}

// depthCap is the room for open containers in skim, and so the highest depth that Limits can ask for.
const depthCap = 63

// WorkerLimits allow somewhat more than producers may send, because retries and deaths add to a message's meta.
var WorkerLimits = Limits{
	Bytes: Default.Bytes + 4096, Elems: Default.Elems + 64, Depth: Default.Depth,
	Path: Default.Path,
}
