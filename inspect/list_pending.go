package inspect

import (
	"bytes"
	"context"
	"hash/fnv"
	"slices"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/state"
)

// pendingReader reads pending tasks: the queue's list and that of its suspects. Places in a list are counted from its
// old end, where tasks that workers claim or give back move them; what producers add at the new end does not. The
// reader finds its place again by the last messages that it has seen. On the way back from the new end, a place that is
// too high shows tasks twice, and none is left out.
type pendingReader struct {
	part
	canceledFilter
	lists [2]*redisstore.Store // in the order of reading
	id    string               // beginning of the ids that are looked for; other messages are not decoded
	sure  bool                 // the place is where it was: nothing was taken out of the list but behind it
}

const (
	searchWindow = 1000 // how far from its former place a message is looked for
	mostAnchors  = 4    // how many of the last messages are looked for
)

func (r *pendingReader) read(ctx context.Context, n int) (tasks []listed, more bool, err error) {
	for r.at.Part < len(r.lists) {
		messages, err := r.next(ctx, n)
		if err != nil {
			return nil, false, err
		}
		for _, m := range messages {
			if r.back {
				r.at.N--
			} else {
				r.at.N++
			}
			last := r.at.Last[max(len(r.at.Last)+1-mostAnchors, 0):]
			r.at.Last = append(slices.Clone(last), digest(m))
			switch {
			case redisstore.IsGap(m):
			case bytes.Contains(m.Bytes, []byte(r.id)):
				tasks = append(tasks, listed{r.task(state.Pending, m, nil), r.at})
			default:
				tasks = append(tasks, listed{Task{Queue: r.store.Name, State: state.Pending}, r.at})
			}
		}
		if len(messages) > 0 {
			tasks, err = r.withoutCanceled(ctx, tasks)
			return tasks, true, err
		}
		r.at = place{Part: r.at.Part + 1}
	}
	return nil, false, nil
}

// taken notes that an action has taken tasks out of the list of a legacy queue, where they leave no gaps.
func (r *pendingReader) taken() { r.sure = r.back }

// next returns up to n messages behind the present place.
func (r *pendingReader) next(ctx context.Context, n int) ([]redisstore.Stored, error) {
	if len(r.at.Last) == 0 { // at the beginning
		if r.back {
			var err error
			if r.at.N, err = r.lists[r.at.Part].PendingLength(ctx); err != nil {
				return nil, err
			}
		}
		return r.page(ctx, n)
	}
	if r.sure {
		r.sure = false
		return r.page(ctx, n)
	}
	last := r.at // where the last message was
	if !r.back {
		last.N--
	}
	messages, err := r.pageAt(ctx, last.N, n+1)
	if err != nil {
		return nil, err
	}
	there := len(messages) > 0 && (digest(messages[0]) == last.Last[len(last.Last)-1] ||
		r.back && redisstore.IsGap(messages[0])) // an action took it
	switch {
	case there && len(messages) > 1:
		return messages[1:], nil
	case !there:
		if r.at.N, err = r.find(ctx); err != nil {
			return nil, err
		}
	}
	return r.page(ctx, n)
}

// page returns up to n messages behind the present place, of which the next one is at N, or before it on the way back.
func (r *pendingReader) page(ctx context.Context, n int) ([]redisstore.Stored, error) {
	if !r.back {
		return r.pageAt(ctx, r.at.N, n)
	}
	if r.at.N <= 0 {
		return nil, nil
	}
	return r.pageAt(ctx, r.at.N-1, n)
}

func (r *pendingReader) pageAt(ctx context.Context, from, n int) ([]redisstore.Stored, error) {
	return r.lists[r.at.Part].PendingPage(ctx, from, n, r.back)
}

// find returns the place behind the latest of the last messages that is still in the list. Of equal messages, as legacy
// queues have them, it takes the nearest one before the former place.
func (r *pendingReader) find(ctx context.Context) (int, error) {
	found, at := -1, 0
	from := max(r.at.N-searchWindow, 0)
	for end := r.at.N + searchWindow; from < end; {
		messages, err := r.lists[r.at.Part].PendingPage(ctx, from, min(end-from, redisstore.MaxListPage), false)
		if err != nil {
			return 0, err
		}
		for i, m := range messages {
			k := slices.Index(r.at.Last, digest(m))
			if (k > found || k == found && from+i <= r.at.N) && k >= 0 && !redisstore.IsGap(m) {
				found, at = k, from+i
			}
		}
		if len(messages) == 0 {
			break
		}
		from += len(messages)
	}
	switch {
	case r.back && found < 0:
		return r.at.N, nil
	case r.back:
		return at, nil
	case found < 0:
		return 0, nil // it was claimed, and so were those before it
	default:
		return at + 1, nil
	}
}

// canceledFilter drops tasks that were canceled, and stay in their list until a worker comes to them.
type canceledFilter struct {
	of  *redisstore.Store
	any bool // some were canceled
}

func newCanceledFilter(ctx context.Context, s *redisstore.Store) (canceledFilter, error) {
	ids, all, err := s.Revoked(ctx, 1)
	return canceledFilter{s, len(ids) > 0 || !all}, err
}

func (f *canceledFilter) withoutCanceled(ctx context.Context, tasks []listed) ([]listed, error) {
	if !f.any || len(tasks) == 0 {
		return tasks, nil
	}
	ids := make([]string, len(tasks))
	for i := range tasks {
		ids[i] = tasks[i].ID
	}
	revoked, err := f.of.AreRevoked(ctx, ids)
	if err != nil {
		return nil, err
	}
	kept := tasks[:0]
	for i := range tasks {
		if !revoked[i] || tasks[i].ID == "" {
			kept = append(kept, tasks[i])
		}
	}
	return kept, nil
}

// digest returns a digest of a message.
func digest(m redisstore.Stored) uint64 {
	h := fnv.New64a()
	h.Write(m.Bytes)
	h.Write([]byte{byte(m.Size)}) //nolint:gosec // any byte of it will do
	return h.Sum64()
}
