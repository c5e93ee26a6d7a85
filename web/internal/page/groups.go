package page

import (
	"context"
	"fmt"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web/internal/site"
)

// groupsPage lists groups of calls that wait for more of them.
type groupsPage struct {
	rights
	choice

	Rows []inspect.Group
	More []moreOf // queues with groups that are not among the rows
}

// moreOf is how many things of a queue a page leaves out.
type moreOf struct {
	Queue string
	N     int
}

func showGroups(s *shared, q *site.Request) (*page, error) {
	c, err := s.choose(q)
	if err != nil {
		return nil, err
	}
	p := groupsPage{rights: s.rights(q), choice: c}
	err = p.each(q, func(queue *inspect.Queue) error {
		name := queue.Name
		if queue.Groups == 0 {
			return nil
		}
		groups, err := site.Read(q.Ctx, s.Fast, "groups "+name, func(ctx context.Context) ([]inspect.Group, error) {
			return q.Ins.Groups(ctx, name)
		})
		p.Rows = append(p.Rows, groups...)
		if more := queue.Groups - len(groups); more > 0 && err == nil {
			p.More = append(p.More, moreOf{name, more})
		}
		return err
	})
	return &page{Title: "Groups", Template: "groups", Data: &p}, err
}

// fireGroup makes a group due: fields "queue", "key" and "function" say which.
func fireGroup(_ *shared, q *site.Request) (outcome, error) {
	queue, key := q.Args.Get("queue"), q.Args.Get("key")
	n, err := q.Ins.FireGroup(q.Ctx, queue, key, q.Args.Get("function"))
	if n == 0 {
		return outcome{}, err
	}
	out := outcome{Text: fmt.Sprintf("Group %s of queue %s is due now: a worker combines its calls.", key, queue)}
	if err != nil {
		out.Text, out.Bad = out.Text+" "+err.Error(), true
	}
	return out, nil
}
