// Package wire encodes task messages and the values in them as MessagePack and decodes them. It is the only package
// that knows the format. docs/PROTOCOL.md describes the format, and testdata/wire holds examples that Go and Python
// both read.
//
// The package trusts no bytes from Redis before it has checked them. Check and Parse read bytes without recursion and
// without allocating; a Codec then checks a value against its Go type, counts the memory that the value will take, and
// only then builds it. No input makes this package panic, overflow the stack, or allocate more than 64 KiB plus 64
// bytes for each byte of input.
package wire

// Limits bounds a message. The zero value allows nothing: start from Default.
type Limits struct {
	Bytes int // length of the message
	// number of values in the message, containers and map keys included; the payload, being binary, counts as one
	// value, and the values inside it have a limit of the same size of their own
	Elems int
	Depth int // nesting of arrays and maps, and of those in the payload, each counted from 0; never more than 63
	Path  int // length of a function path and of a task id, in bytes
}

// The limits of the protocol. If one process raises them, it makes messages that other processes archive as malformed.
const (
	maxBytes = 1 << 20
	maxElems = 65536
	maxDepth = 32
	maxPath  = 512
)

// Default holds the limits of producers and workers. Codecs apply these limits even if a program changes this variable.
var Default = Limits{Bytes: maxBytes, Elems: maxElems, Depth: maxDepth, Path: maxPath}

// depthCap is the number of open containers for which skim has room, and so the highest depth that Limits can ask for.
const depthCap = 63

// WorkerLimits allow somewhat more than producers may send, because retries and worker deaths add to a message's meta.
var WorkerLimits = Limits{
	Bytes: Default.Bytes + 4096, Elems: Default.Elems + 64, Depth: Default.Depth,
	Path: Default.Path,
}
