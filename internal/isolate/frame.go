package isolate

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// The kinds of frames.
const (
	frameJob     = 'j' // parent: run this
	frameCancel  = 'c' // parent: the context of a job ends; number of the job, cause
	frameDump    = 'd' // parent: send the stacks of all goroutines; number of the job
	frameReady   = 'r' // child: set up
	frameFailed  = 'f' // child: not set up; why
	frameReport  = 'p' // child: a report of the job
	frameStacks  = 's' // child: stacks of goroutines
	frameVerdict = 'v' // child: how the job ended
)

const (
	headerSize = 5
	// maxFrame is more than any job or verdict has: messages are bounded by a mebibyte, and results are too.
	maxFrame = 64 << 20
	// maxStacks bounds the stacks that a child sends.
	maxStacks = 16 << 10
)

// appendFrame appends a frame to dst.
func appendFrame(dst []byte, kind byte, parts ...[]byte) []byte {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(size))
	dst = append(dst, kind)
	for _, part := range parts {
		dst = append(dst, part...)
	}
	return dst
}

// readFrame reads a frame into buf, which grows as needed. The body is valid until the next call.
func readFrame(r *bufio.Reader, buf *[]byte) (kind byte, body []byte, err error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, nil, err
	}
	size := int(binary.BigEndian.Uint32(header[:]))
	if size > maxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes: expected at most %d", size, maxFrame)
	}
	if cap(*buf) < size {
		*buf = make([]byte, size)
	}
	body = (*buf)[:size]
	_, err = io.ReadFull(r, body)
	return header[4], body, err
}

// numbered writes the number of a job.
func numbered(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// cutNumber reads the number of a job.
func cutNumber(b []byte) (n uint64, rest []byte, ok bool) {
	if len(b) < 8 {
		return 0, nil, false
	}
	return binary.BigEndian.Uint64(b), b[8:], true
}
