package inspect_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// TestFindPending finds pending tasks and suspects among more than one page of them, and none that is canceled, or
// whose id stands only in the arguments of others.
func TestFindPending(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	q := func(i int) *delayed.Queue { return b.q.With(delayed.TaskID(fmt.Sprint("id ", i))) }
	var refs []*delayed.Ref
	for i := range 2500 {
		ref, err := q(i).Enqueue(bg, delayed.NewGoTask("mail.Welcome", "id", i, fmt.Sprintf("no %d.", i)))
		b.Must(err)
		refs = append(refs, ref)
	}
	for range 2 { // the oldest
		b.Do("LMOVE", b.Name, b.Name+"_suspects", "LEFT", "RIGHT")
		b.Do("LMOVE", b.Name+"_noti", b.Name+"_suspects_noti", "LEFT", "RIGHT")
	}
	b.Must(refs[7].Cancel(bg))
	for _, i := range []int{0, 1, 2, 1000, 2499} {
		id := fmt.Sprint("id ", i)
		task, err := b.ins.Task(bg, queueName, id)
		if err != nil || task.ID != id || task.State != state.Pending ||
			task.Call != fmt.Sprintf(`mail.Welcome("id", %d, "no %d.")`, i, i) {
			t.Errorf("%s: found %+v, %v", id, task, err)
		}
	}
	for _, id := range []string{"id 7", "id", "no 5."} {
		if task, err := b.ins.Task(bg, queueName, id); !errors.Is(err, inspect.ErrNotFound) {
			t.Errorf("%s: found %+v, %v", id, task, err)
		}
	}
}
