package delayed

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// maxGroupKey bounds the key of a group, in bytes.
const maxGroupKey = 256

// Group gathers the call with others that have the same key, and one call is made of them, the combined call:
//
//	q.With(delayed.Group("search")).Delay(search.Index, "tenant", 7, 8)
//	q.With(delayed.Group("search")).Delay(search.Index, "tenant", 9) // together: search.Index("tenant", 7, 8, 9)
//
// The last parameter of the function is variadic, or a slice other than []byte; the values for it are put together in
// the order of the calls. Calls that differ in the function or in the arguments before it are in groups of their own,
// whatever their key. In a task made by NewGoTask the last argument must be a slice: it is what grows.
//
// A call with In or At joins its group when it is due; those that are due in the same millisecond join in any order.
// GatherPolicy decides when the combined call is made. The combined call has the id of the first call that it is made
// of, and the options of the last one. No process owns a group: every worker of the queue makes the combined call when
// it is due, also a worker that does not know the function. Group cannot be used with TaskID, Front, options that hold
// a lock, or Python tasks.
//
// While the group gathers, each call has a Ref of its own: Ref.State returns state.Aggregating, and Ref.Cancel leaves
// the call out. Once the combined call is made, only the Ref of its first call names a task. The state of the others is
// then state.Unknown, and canceling them changes nothing. Ref.Wait fails with ErrNoResult for the Ref of a gathered
// call: to wait for the combined call, take Queue.Ref with the id of the first call. The key is not empty and at most
// 256 bytes long.
func Group(key string) Option { return groupOption(key) }

type groupOption string

func (o groupOption) forQueueWith(c *callOptions) {
	key := string(o)
	c.group = &key
	if key == "" || len(key) > maxGroupKey || !utf8.ValidString(key) {
		c.err = fmt.Errorf("%w: Group with a key of %d bytes, expected 1 to %d in UTF-8", ErrArguments, len(key),
			maxGroupKey)
	}
}

func (o groupOption) String() string { return fmt.Sprintf("Group(%q)", string(o)) }

// GatherPolicy decides when the combined call of a Group is made: when the first of these conditions holds, or when
// another call would make the arguments more than a message may hold (1 MiB, 65,536 values). The policy of the latest
// call of a group applies to all of it.
type GatherPolicy struct {
	// Grace is the longest pause between two calls: the combined call is made when no other has come for so long.
	// Defaults to a minute.
	Grace time.Duration
	// MaxDelay is how long the first call waits at most. Defaults to no limit: as long as calls come within Grace and
	// MaxSize is not reached.
	MaxDelay time.Duration
	// MaxSize is how many calls are gathered at most. Defaults to 1,000; never more than 5,000.
	MaxSize int
}

// Gather sets when the combined call of a Group is made. Without Group it changes nothing.
func Gather(p GatherPolicy) TaskOption { return gatherOption(p) }

type gatherOption GatherPolicy

// wrong returns what was expected in place of the policy; "" if it is fine.
func (o gatherOption) wrong() (want string) {
	for _, d := range []time.Duration{o.Grace, o.MaxDelay} {
		if d < 0 {
			return "no negative duration"
		}
		if want := tooShort(d); want != "" {
			return "durations of " + want
		}
	}
	if o.MaxSize < 0 {
		return "no negative MaxSize"
	}
	return ""
}

func (o gatherOption) forQueueWith(c *callOptions) {
	c.refuses(o, o.wrong())
	c.gather = o.onWire()
}

func (o gatherOption) forFunc(d *funcDefaults) {
	d.refuses(o, o.wrong())
	d.gather = o.onWire()
}

// onWire returns the policy, with defaults, as messages carry it.
func (o gatherOption) onWire() *wire.Gather {
	w := &wire.Gather{
		Grace: max(o.Grace.Milliseconds(), 1), MaxDelay: max(o.MaxDelay.Milliseconds(), 0),
		MaxSize: min(o.MaxSize, group.MaxGroupSize),
	}
	if o.Grace == 0 {
		w.Grace = group.DefaultGrace.Milliseconds()
	}
	if o.MaxDelay > 0 {
		w.MaxDelay = max(w.MaxDelay, 1)
	}
	if w.MaxSize <= 0 {
		w.MaxSize = group.DefaultGroupSize
	}
	return w
}

func (o gatherOption) String() string {
	var fields []string
	if o.Grace != 0 {
		fields = append(fields, "Grace: "+o.Grace.String())
	}
	if o.MaxDelay != 0 {
		fields = append(fields, "MaxDelay: "+o.MaxDelay.String())
	}
	if o.MaxSize != 0 {
		fields = append(fields, "MaxSize: "+strconv.Itoa(o.MaxSize))
	}
	return "Gather(GatherPolicy{" + strings.Join(fields, ", ") + "})"
}

// gathered prepares a task for its group: it returns x with the policy for the message, and rewrites the arguments of a
// task given by path.
func (t *Task) gathered(msg *wire.Message, o *callOptions, x *wire.Extra, h *redisstore.Hold) (*wire.Extra, error) {
	refuse := func(why string) (*wire.Extra, error) {
		return nil, fmt.Errorf("%w: %s: Group: %s", ErrArguments, msg.Path, why)
	}
	if x == nil {
		x = new(wire.Extra)
	}
	switch {
	case msg.Python():
		return refuse("expected a Go function, found a Python task; leave Group out and gather in Python")
	case o.id != nil:
		return refuse("expected no TaskID, because a gathered call becomes part of another task; leave one of the " +
			"two out")
	case h != nil || x.Lock != "":
		return refuse("expected no option that holds a lock, because a gathered call becomes part of another task; " +
			"leave one of the two out")
	case o.front:
		return refuse("expected no Front, because a group joins the end of its queue when it is due; leave one of " +
			"the two out")
	}
	how := wire.Gather{}
	switch f := t.fn; {
	case o.gather != nil:
		how = *o.gather
	case f != nil && defaultsOf(f).gather != nil:
		how = *defaultsOf(f).gather
	default:
		how = *gatherOption{}.onWire()
	}
	if f := t.fn; f != nil {
		if !f.Growing() {
			return nil, function.Refusal(f.Path(),
				"a variadic function or one whose last parameter is a slice other than []byte, for Group",
				f.Type().String(), "let it take its values so, or leave Group out")
		}
		how.Fixed = f.Arity() - 1
	} else if err := lastIsList(msg, &how); err != nil {
		return refuse(err.Error())
	}
	x.Group, x.Gather = *o.group, &how
	return x, nil
}

// lastIsList turns the counted arguments of a task given by path into those of a call whose last argument is a slice.
func lastIsList(msg *wire.Message, how *wire.Gather) error {
	if !msg.Meta.HasN {
		return errors.New("expected a task made by Call or NewGoTask, found one that a worker received; make a new one")
	}
	n := msg.Meta.N
	_, rest, ok := wire.ArrayHeader(msg.Payload)
	if !ok || n == 0 {
		return errors.New("expected a slice as the last argument of a task given by path, found no argument; give " +
			"the values as a slice")
	}
	last := rest
	for range n - 1 {
		var err error
		if last, _, err = wire.Skip(last); err != nil {
			return err
		}
	}
	if _, _, ok := wire.ArrayHeader(last); !ok && !bytes.Equal(last, wire.Nil) {
		return fmt.Errorf("expected a slice as the last argument of a task given by path, found %s; give the values "+
			"as a slice", wire.Found(last))
	}
	if n == 1 {
		msg.Payload = rest
	}
	how.Fixed = n - 1
	msg.Meta.HasN, msg.Meta.N = false, 0
	return nil
}
