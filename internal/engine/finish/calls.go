package finish

import (
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
)

// completedOf turns endings into arguments of Store.Complete.
func completedOf(group []lane.Ending) []redisstore.Completed {
	tasks := make([]redisstore.Completed, len(group))
	for i := range group {
		e := &group[i]
		tasks[i] = redisstore.Completed{
			Token: e.Claim.Token, ID: e.ID, Keep: e.Wait, Value: e.Info, Lock: e.Claim.Lock(),
			Awaited:  e.Claim.Msg.Meta.Extra.Keeps(),
			Canceled: e.Outcome == lifecycle.OutcomeCancel, Certain: e.Certain,
		}
	}
	return tasks
}

// shelvedOf turns endings into arguments of Store.Shelve.
func shelvedOf(group []lane.Ending) []redisstore.Shelved {
	tasks := make([]redisstore.Shelved, len(group))
	for i := range group {
		e := &group[i]
		tasks[i] = redisstore.Shelved{
			Token: e.Claim.Token, ID: e.ID, Wait: e.Wait, Message: e.Message, Info: e.Info,
			Path: e.Claim.Msg.Path, Lock: e.Claim.Lock(),
		}
		tasks[i].Awaited = lifecycle.Ends[e.Outcome].To == lifecycle.StateArchived && e.Claim.Msg.Meta.Extra.Keeps()
	}
	return tasks
}

// membersOf turns endings into arguments of Store.Join.
func membersOf(endings []lane.Ending) []group.Member {
	members := make([]group.Member, len(endings))
	for i := range endings {
		members[i], _ = group.NewMember(endings[i].Claim.Raw) // no error: receive has tried it
	}
	return members
}

// partsOf divides endings of one kind into those of one call each, in the order in which the calls must be made.
func partsOf(kind lifecycle.Outcome, endings []lane.Ending, size int) (parts [][]lane.Ending) {
	for len(endings) > 0 {
		if kind == lifecycle.OutcomeRelease {
			// The last ones first, because each call puts its tasks in front of all others.
			last := len(endings) - 1
			rest := len(endings) - fitting(len(endings), size, func(i int) *lane.Ending { return &endings[last-i] })
			parts, endings = append(parts, endings[rest:]), endings[:rest]
			continue
		}
		n := fitting(len(endings), size, func(i int) *lane.Ending { return &endings[i] })
		if kind == lifecycle.OutcomeGather {
			n = sameGroup(endings[:n])
		}
		parts, endings = append(parts, endings[:n]), endings[n:]
	}
	return parts
}

// groupOf returns the group that a task joins by its ending; "" if it ends otherwise.
func groupOf(e *lane.Ending) string {
	if e.Outcome != lifecycle.OutcomeGather {
		return ""
	}
	return e.ID
}

// sameGroup returns how many endings at the beginning of group have the same task group.
func sameGroup(group []lane.Ending) int {
	n := 1
	for n < len(group) && group[n].ID == group[0].ID {
		n++
	}
	return n
}

// fitting returns how many of n endings, at most size, one call may send. A call moves their messages: it must not
// block Redis for long, and on a slow line it must not exceed redisstore.CallTimeout, or it would be repeated for ever.
func fitting(n, size int, at func(int) *lane.Ending) (fit int) {
	bytes := 0
	for fit < min(n, size) {
		bytes += len(at(fit).Claim.Raw) + at(fit).Claim.Large() + len(at(fit).Info)
		if fit > 0 && bytes > redisstore.MaxCallBytes {
			break
		}
		fit++
	}
	return fit
}
