package redisstore

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/seam"
	"github.com/godelayed/delayed/internal/wire"
)

// PendingPage reads up to n pending messages, or of the suspects, from a place on, 0 for the oldest: on to newer ones,
// or back to older ones. Places behind the end of the list hold gaps on the way back.
func (s *Store) PendingPage(ctx context.Context, from, n int, back bool) ([]Stored, error) {
	return s.pageFrom(ctx, s.keys.list, from, n, back)
}

// SeekPending looks for a text, such as an id, in up to MaxListPage pending messages, or suspects, from a place counted
// from the end on, 0 for the newest, back to older ones. It returns the messages that contain the text, and how many it
// has looked at: none behind the oldest one.
func (s *Store) SeekPending(ctx context.Context, from int, text string) (found []Stored, looked int, err error) {
	page, err := storedAll(s.eval(ctx, "page", []string{s.keys.list}, -1-from, MaxListPage,
		wire.WorkerLimits.Bytes, flag(true), text))
	looked = len(page)
	return slices.DeleteFunc(page, IsGap), looked, err
}

// PendingLength returns how many members the list of pending messages, or of suspects, has, gaps included.
func (s *Store) PendingLength(ctx context.Context) (int, error) {
	return redis.Int(s.do(ctx, "LLEN", s.keys.list))
}

// GroupPage reads up to n calls of a group, which has the name that GroupNames returns: on from a place, 0 for the
// oldest call, or back from it, −1 for the newest one.
func (s *Store) GroupPage(ctx context.Context, name string, from, n int, back bool) ([]Stored, error) {
	return s.pageFrom(ctx, s.keys.group+name, from, n, back)
}

// GroupNames returns up to n names of groups, by the time when they are due, behind the given place.
func (s *Store) GroupNames(ctx context.Context, after SetPlace, n int, back bool) ([]ListedTask, error) {
	return s.members(ctx, s.keys.groups, after, n, back)
}

// SetPlace is a place in a sorted set: that of a member, which need not be there any more. The zero value is the
// beginning.
type SetPlace struct {
	Score  string `json:"s,omitempty"`
	Member string `json:"m,omitempty"`
}

// ShelfPage reads up to n tasks of a set behind a place, and returns the place behind them; the zero place at the end.
// back goes through the set from its end.
func (s *Store) ShelfPage(
	ctx context.Context, on Shelf, after SetPlace, n int, back bool,
) (page []ListedTask, next SetPlace, err error) {
	page, err = s.members(ctx, s.shelfKey(on), after, n, back)
	if err != nil || len(page) == 0 {
		return nil, next, err
	}
	next = placeBehind(page)
	ids := idsOf(page)
	for done := 0; done < len(ids); {
		messages, err := s.someFields(ctx, s.keys.tasks, ids[done:], wire.WorkerLimits.Bytes)
		if err != nil {
			return nil, next, err
		}
		for i, m := range messages {
			page[done+i].Message = m
		}
		done += len(messages)
	}
	infos, err := s.infos(ctx, ids)
	if err != nil {
		return nil, next, err
	}
	for i := range page {
		page[i].Info = infos[i]
	}
	// Tasks that have left the set meanwhile.
	return slices.DeleteFunc(page, func(t ListedTask) bool { return !t.Message.Exists() }), next, nil
}

// CompletedPage is ShelfPage for completed tasks, whose messages are in their infos.
func (s *Store) CompletedPage(
	ctx context.Context, after SetPlace, n int, back bool,
) (page []ListedTask, next SetPlace, err error) {
	page, err = s.members(ctx, s.keys.completed, after, n, back)
	if err != nil || len(page) == 0 {
		return nil, next, err
	}
	next = placeBehind(page)
	ids := idsOf(page)
	for done := 0; done < len(ids); {
		infos, err := s.someFields(ctx, s.keys.results, ids[done:], wire.InfoLimits.Bytes)
		if err != nil {
			return nil, next, err
		}
		for i, m := range infos {
			page[done+i].Info, page[done+i].Message.Size = m.Bytes, m.Size
		}
		done += len(infos)
	}
	return slices.DeleteFunc(page, func(t ListedTask) bool { return t.Info == nil && t.Message.Size == 0 }), next, nil
}

// placeBehind returns the place behind the last of some members.
func placeBehind(page []ListedTask) SetPlace {
	last := &page[len(page)-1]
	return SetPlace{Score: last.Score, Member: last.ID}
}

// members reads a page of a sorted set of times.
func (s *Store) members(
	ctx context.Context, set string, after SetPlace, n int, back bool,
) ([]ListedTask, error) {
	return listedOf(s.eval(ctx, "shelf", []string{set}, after.Score, after.Member, n, flag(back)))
}

// ClaimedTask is a claim as lists show it.
type ClaimedTask struct {
	Token   string
	Message Stored
	Since   time.Time // when it was claimed; zero: unknown
}

// AllTokens returns the tokens of a worker's claims in the order in which it has claimed them.
func (s *Store) AllTokens(ctx context.Context, worker string) ([]string, error) {
	tokens, err := s.Tokens(ctx, worker)
	slices.SortFunc(tokens, CompareTokens)
	return tokens, err
}

// CompareTokens orders tokens by batch, then by their place in it.
func CompareTokens(a, b string) int {
	na, ia, okA := ParseToken(a)
	nb, ib, okB := ParseToken(b)
	switch {
	case !okA || !okB:
		return strings.Compare(a, b)
	case na != nb:
		return int(min(max(int64(na)-int64(nb), -1), 1)) //nolint:gosec // numbers of claims are small
	}
	return ia - ib
}

// ClaimPage reads as many of a worker's claims as fit into one call, in the order of the tokens. It returns how many
// tokens it has dealt with; the page lacks claims that have ended.
func (s *Store) ClaimPage(
	ctx context.Context, worker string, tokens []string,
) (page []ClaimedTask, read int, err error) {
	messages, err := s.someFields(ctx, s.keys.processing+worker, tokens, wire.WorkerLimits.Bytes)
	if err != nil {
		return nil, 0, err
	}
	tokens = tokens[:min(len(tokens), len(messages))]
	batches := []any{s.keys.claims + worker}
	for _, token := range tokens {
		batch, _, _ := strings.Cut(token, "-")
		batches = append(batches, batch)
	}
	times, err := redis.Strings(s.do(ctx, "HMGET", batches...))
	if err != nil {
		return nil, 0, err
	}
	for i, token := range tokens {
		if !messages[i].Exists() {
			continue
		}
		c := ClaimedTask{Token: token, Message: messages[i]}
		if ms, err := strconv.ParseInt(times[i], 10, 64); err == nil {
			c.Since = time.UnixMilli(ms)
		}
		page = append(page, c)
	}
	return page, len(messages), nil
}

// List returns all tasks of the queue, state by state. It is not atomic: use it while nothing else uses the queue.
func (s *Store) List(ctx context.Context) (tasks []seam.Filed, err error) {
	messages, err := s.listed(ctx, s.keys.list)
	suspects, err2 := s.listed(ctx, s.keys.suspects)
	messages, err = append(messages, suspects...), errors.Join(err, err2)
	revoked, err2 := redis.Strings(s.do(ctx, "ZRANGE", s.keys.revoked, 0, -1))
	err = errors.Join(err, err2)
	for _, m := range messages {
		f := seam.Filed{State: "pending", ID: idOf(m), Message: m}
		if f.ID != "" && slices.Contains(revoked, f.ID) {
			f.State = "canceled"
		}
		tasks = append(tasks, f)
	}
	workers, err2 := s.Workers(ctx)
	err = errors.Join(err, err2)
	for _, worker := range workers {
		hash := s.keys.processing + worker
		tokens, err2 := redis.Strings(s.do(ctx, "HKEYS", hash))
		err = errors.Join(err, err2)
		claims, err2 := s.fields(ctx, hash, tokens, wire.WorkerLimits.Bytes)
		err = errors.Join(err, err2)
		for _, m := range claims {
			tasks = append(tasks, seam.Filed{State: "active", ID: idOf(m), Message: m})
		}
	}
	groups, err2 := s.scores(ctx, s.keys.groups)
	err = errors.Join(err, err2)
	for _, g := range groups {
		calls, err2 := s.listed(ctx, s.keys.group+g.ID)
		err = errors.Join(err, err2)
		for _, m := range calls {
			tasks = append(tasks, seam.Filed{State: "aggregating", ID: idOf(m), Message: m, At: g.At})
		}
	}
	for _, set := range []struct{ state, key string }{
		{"scheduled", s.keys.scheduled},
		{"retry", s.keys.retry},
		{"parked", s.keys.parked},
		{"archived", s.keys.archived},
		{"completed", s.keys.completed},
	} {
		filed, err2 := s.listSet(ctx, set.state, set.key)
		tasks, err = append(tasks, filed...), errors.Join(err, err2)
	}
	return tasks, err
}

// scores returns all members of a sorted set of times.
func (s *Store) scores(ctx context.Context, key string) ([]ListedTask, error) {
	return listedOf(s.do(ctx, "ZRANGE", key, 0, -1, "WITHSCORES"))
}

// listSet returns the tasks of one set.
func (s *Store) listSet(ctx context.Context, state, key string) (tasks []seam.Filed, err error) {
	all, err := s.scores(ctx, key)
	for _, m := range all {
		if err != nil {
			break
		}
		f := seam.Filed{State: state, ID: m.ID, At: m.At}
		if state == "completed" { // their infos are in the results hash
			f.Info, err = s.field(ctx, s.keys.results, f.ID)
			f.Message = wire.ParseInfo(f.Info).Message
			tasks = append(tasks, f)
			continue
		}
		if f.Message, err = s.field(ctx, s.keys.tasks, f.ID); err != nil {
			break
		}
		f.Info, err = s.field(ctx, s.keys.info, f.ID)
		tasks = append(tasks, f)
	}
	return tasks, err
}

// listed returns all messages of a list, nil for those that are too large.
func (s *Store) listed(ctx context.Context, list string) (messages [][]byte, err error) {
	for skip := 0; ; {
		some, err := s.pageFrom(ctx, list, skip, MaxListPage, false)
		if err != nil || len(some) == 0 {
			return messages, err
		}
		skip += len(some)
		for _, m := range some {
			if !IsGap(m) {
				messages = append(messages, m.Bytes)
			}
		}
	}
}

// field returns a field of a hash, nil if it is missing or too large.
func (s *Store) field(ctx context.Context, hash, name string) ([]byte, error) {
	some, err := s.someFields(ctx, hash, []string{name}, wire.InfoLimits.Bytes)
	if err != nil {
		return nil, err
	}
	return some[0].Bytes, nil
}

// idOf returns the id that a message carries, "" for none.
func idOf(message []byte) string {
	m, err := wire.Parse(message, wire.WorkerLimits)
	if err != nil {
		return ""
	}
	return m.Meta.ID
}

// FiledList reads a page of a shelf, by rank, without messages, and returns how many tasks the shelf has.
func (s *Store) FiledList(ctx context.Context, on Shelf, offset, n int) (page []ListedTask, total int, err error) {
	set := s.shelfKey(on)
	if total, err = redis.Int(s.do(ctx, "ZCARD", set)); err != nil || total <= offset {
		return nil, total, err
	}
	if page, err = listedOf(s.do(ctx, "ZRANGE", set, offset, offset+n-1, "WITHSCORES")); err != nil {
		return nil, 0, err
	}
	infos, err := s.infos(ctx, idsOf(page))
	if err != nil {
		return nil, 0, err
	}
	for i := range page {
		page[i].Info = infos[i]
	}
	return page, total, nil
}

// FiledInfo reads the info of a task; nil if there is none.
func (s *Store) FiledInfo(ctx context.Context, id string) ([]byte, error) {
	infos, err := s.infos(ctx, []string{id})
	if err != nil {
		return nil, err
	}
	return infos[0], nil
}
