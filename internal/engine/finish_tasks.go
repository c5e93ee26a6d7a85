package engine

import (
	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
)

// completedOf turns endings into arguments of Store.Complete.
func completedOf(group []ending) []redisstore.Completed {
	tasks := make([]redisstore.Completed, len(group))
	for i := range group {
		e := &group[i]
		tasks[i] = redisstore.Completed{
			Token: e.claim.token, ID: e.id, Keep: e.wait, Value: e.info, Lock: e.claim.lock(),
			Awaited: e.claim.msg.Meta.Extra.Keeps(),
		}
	}
	return tasks
}

// annulledOf turns endings into arguments of Store.Annul.
func annulledOf(group []ending) []redisstore.Annulled {
	tasks := make([]redisstore.Annulled, len(group))
	for i, c := range completedOf(group) {
		tasks[i] = redisstore.Annulled{Completed: c, Certain: group[i].certain}
	}
	return tasks
}

// shelvedOf turns endings into arguments of Store.Shelve.
func shelvedOf(group []ending) []redisstore.Shelved {
	tasks := make([]redisstore.Shelved, len(group))
	for i := range group {
		e := &group[i]
		tasks[i] = redisstore.Shelved{
			Token: e.claim.token, ID: e.id, Wait: e.wait, Message: e.message, Info: e.info,
			Path: e.claim.msg.Path, Lock: e.claim.lock(),
		}
		tasks[i].Awaited = lifecycle.Ends[e.outcome].To == lifecycle.StateArchived && e.claim.msg.Meta.Extra.Keeps()
	}
	return tasks
}

// membersOf turns endings into arguments of Store.Join.
func membersOf(endings []ending) []group.Member {
	members := make([]group.Member, len(endings))
	for i := range endings {
		members[i], _ = group.NewMember(endings[i].claim.raw) // no error: receive has tried it
	}
	return members
}

// partsOf divides endings of one kind into those of one call each, in the order in which the calls must be made.
func partsOf(kind lifecycle.Outcome, endings []ending, size int) (parts [][]ending) {
	for len(endings) > 0 {
		if kind == lifecycle.OutcomeRelease {
			// The last ones first, because each call puts its tasks in front of all others.
			last := len(endings) - 1
			rest := len(endings) - fitting(len(endings), size, func(i int) *ending { return &endings[last-i] })
			parts, endings = append(parts, endings[rest:]), endings[:rest]
			continue
		}
		n := fitting(len(endings), size, func(i int) *ending { return &endings[i] })
		if kind == lifecycle.OutcomeGather {
			n = sameGroup(endings[:n])
		}
		parts, endings = append(parts, endings[:n]), endings[n:]
	}
	return parts
}

// groupOf returns the group that a task joins by its ending; "" if it ends otherwise.
func groupOf(e *ending) string {
	if e.outcome != lifecycle.OutcomeGather {
		return ""
	}
	return e.id
}

// sameGroup returns how many endings at the beginning of group have the same task group.
func sameGroup(group []ending) int {
	n := 1
	for n < len(group) && group[n].id == group[0].id {
		n++
	}
	return n
}

// fitting returns how many of n endings, at most size, one call may send. A call moves their messages: it must not
// block Redis for long, and on a slow line it must not exceed redisstore.CallTimeout, or it would be repeated for ever.
func fitting(n, size int, at func(int) *ending) (fit int) {
	bytes := 0
	for fit < min(n, size) {
		bytes += len(at(fit).claim.raw) + at(fit).claim.large() + len(at(fit).info)
		if fit > 0 && bytes > redisstore.MaxCallBytes {
			break
		}
		fit++
	}
	return fit
}
