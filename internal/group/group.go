// Package group combines the calls that were gathered in a group into one call. It knows nothing of Redis.
package group

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// Member is a call that is gathered in a group: a message with its arguments split.
type Member struct {
	Message []byte
	Msg     wire.Message
	Group   string // name of the group in Redis
	How     wire.Gather
	fixed   []byte // the arguments before the list, one after the other
	list    []byte // the values of the list, one after the other
	count   int    // their number
	Bytes   int    // of the list
	Values  int    // in the list, nested ones included
	before  int    // values in fixed
}

// MaxCalls bounds the calls that Compose returns, because one script makes no more tasks pending.
const MaxCalls = 1000

// errNotGathered says that a message does not ask to be gathered.
var errNotGathered = errors.New("delayed: the message names no group")

// NewMember parses a message that names a group.
func NewMember(message []byte) (m Member, err error) {
	m.Message, m.Bytes = message, len(message) // all that is known if an error follows
	msg, err := wire.Parse(message, wire.WorkerLimits)
	if err != nil {
		return m, err
	}
	x := msg.Meta.Extra
	if x == nil || x.Group == "" || msg.Python() {
		return m, errNotGathered
	}
	if x.Gather != nil {
		m.How = *x.Gather
	} else {
		m.How = wire.Gather{Grace: DefaultGrace.Milliseconds(), MaxSize: DefaultGroupSize}
	}
	if m.How.MaxSize < 1 || m.How.MaxSize > MaxGroupSize {
		m.How.MaxSize = MaxGroupSize
	}
	m.Msg = msg
	if err := m.split(); err != nil {
		return m, err
	}
	m.Group = groupName(msg.Path, x.Group, m.How.Fixed, m.fixed)
	return m, nil
}

// split finds the list to combine, which follows the fixed arguments. In a message that counts its arguments, the
// values of the list are arguments themselves; in others, the list is the last argument, or the whole payload.
func (m *Member) split() error {
	b := m.Msg.Payload
	n, rest, isArray := wire.ArrayHeader(b)
	lone := len(b) == 0 || bytes.Equal(b, wire.Nil) // no values at all
	switch {
	case m.How.Fixed == 0 && lone:
		m.Bytes = 0
		return nil
	case !isArray:
		return fmt.Errorf("delayed: expected arguments in an array, found %s", wire.Found(b))
	case m.Msg.Meta.HasN && n < m.How.Fixed, !m.Msg.Meta.HasN && m.How.Fixed > 0 && n != m.How.Fixed+1:
		return fmt.Errorf("delayed: expected %d arguments and a list, found %d", m.How.Fixed, n)
	}
	list := rest
	for range m.How.Fixed {
		after, values, err := wire.Skip(list)
		if err != nil {
			return err
		}
		list, m.before = after, m.before+values
	}
	m.fixed = rest[:len(rest)-len(list)]
	n -= m.How.Fixed
	if !m.Msg.Meta.HasN && m.How.Fixed > 0 {
		last := list
		if n, list, isArray = wire.ArrayHeader(last); !isArray {
			if n, list = 0, nil; !bytes.Equal(last, wire.Nil) {
				return fmt.Errorf("delayed: expected a list as the last argument, found %s", wire.Found(last))
			}
		}
	}
	m.list, m.count, m.Bytes = list, n, len(list)
	for len(list) > 0 {
		after, values, err := wire.Skip(list)
		if err != nil {
			return err
		}
		list, m.Values = after, m.Values+values
	}
	return nil
}

// groupName returns the name of a group in Redis: a digest of what its members have in common.
func groupName(path, key string, fixed int, args []byte) string {
	h := sha256.New()
	var head []byte
	for _, s := range []string{path, key} {
		head = append(binary.AppendUvarint(head, uint64(len(s))), s...)
	}
	h.Write(binary.AppendUvarint(head, uint64(max(fixed, 0))))
	h.Write(args)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// callBatch holds members of one group that become one call.
type callBatch struct {
	first, last   *Member
	size          int // members
	list          []byte
	count, values int
}

// sameGroup reports whether m belongs to the same group.
func (b *callBatch) sameGroup(m *Member) bool {
	return m.Group == b.first.Group && m.Msg.Path == b.first.Msg.Path && bytes.Equal(m.fixed, b.first.fixed)
}

// fits reports whether the message stays within the limits when m is added. Its head would be that of m.
func (b *callBatch) fits(m *Member) bool {
	const heads = 32 // of the arrays and of the payload, with the id of the first member
	size := len(m.Message) - m.Bytes + len(b.list) + m.Bytes + len(b.first.Msg.Meta.ID) + heads
	return size <= wire.Default.Bytes && 2+m.before+b.values+m.Values <= wire.Default.Elems
}

func (b *callBatch) add(m *Member) {
	if b.size == 0 {
		b.first = m
	}
	b.last = m
	b.size++
	b.list = append(b.list, m.list...)
	b.count += m.count
	b.values += m.Values
}

// message returns the combined call. It has the id of the first member; all else in its head is that of the last one.
func (b *callBatch) message(nowMs int64) []byte {
	msg := b.last.Msg
	id := b.first.Msg.Meta.ID
	if id == "" {
		id = wire.NewTaskID()
	}
	x := *msg.Meta.Extra
	x.Group, x.Gather, x.FirstFailed, x.Failures, x.AloneDeaths, x.Due = "", nil, 0, nil, 0, 0
	msg.Meta = wire.Meta{
		ID: id, EnqueuedAt: nowMs, HasMaxRetry: msg.Meta.HasMaxRetry, MaxRetry: msg.Meta.MaxRetry, Extra: &x,
		Rest: msg.Meta.Rest,
	}
	payload := make([]byte, 0, len(b.last.fixed)+len(b.list)+16)
	if fixed := b.last.How.Fixed; fixed > 0 {
		payload = append(wire.AppendArrayHeader(payload, fixed+1), b.last.fixed...)
	}
	msg.Payload = append(wire.AppendArrayHeader(payload, b.count), b.list...)
	return msg.Append(nil)
}

// Compose combines the first messages of a group: usually into one call, of the first size messages or of as many as
// fit. A message that cannot be combined becomes a call unchanged, so that it does not hold up the group; a worker
// archives it if it is undecodable. Compose returns at most MaxCalls calls, and the members that they replace. These
// include canceled ones, which are in no call.
func Compose(raws [][]byte, size int, nowMs int64, canceled map[string]bool) (calls [][]byte, members []Member) {
	var b callBatch
	flush := func() {
		if b.size > 0 {
			calls = append(calls, b.message(nowMs))
		}
		b = callBatch{}
	}
	members = make([]Member, 0, len(raws))
	for _, raw := range raws {
		if len(calls) > MaxCalls-2 { // one turn may add two
			break
		}
		m, err := NewMember(raw)
		members = append(members, m)
		if err != nil {
			flush()
			calls = append(calls, raw)
			continue
		}
		if canceled[m.Msg.Meta.ID] {
			continue
		}
		if b.size > 0 && !b.sameGroup(&m) {
			flush()
		}
		if b.size > 0 && (b.size == size || !b.fits(&m)) {
			members = members[:len(members)-1]
			break
		}
		b.add(&members[len(members)-1])
	}
	flush()
	return calls, members
}

const (
	// MaxGroupSize bounds the calls that are gathered into one: reading more of them would keep Redis busy for longer
	// than 5 ms.
	MaxGroupSize = 5_000
	// DefaultGrace is the default of GatherPolicy.Grace.
	DefaultGrace = time.Minute
	// DefaultGroupSize is the default of GatherPolicy.MaxSize.
	DefaultGroupSize = 1000
)
