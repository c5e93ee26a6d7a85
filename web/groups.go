package web

import (
	"context"
	"fmt"

	"github.com/godelayed/delayed/inspect"
)

// groupsPage lists groups of calls that wait for more of them.
type groupsPage struct {
	rights
	choice

	Rows []inspect.Group
	Back string
	More []moreOf // queues with groups that are not among the rows
}

// moreOf says how many things of a queue a page leaves out.
type moreOf struct {
	Queue string
	N     int
}

func showGroups(s *site, q *request) (*page, error) {
	c, err := s.choose(q)
	if err != nil {
		return nil, err
	}
	queues, err := c.chosen()
	if err != nil {
		return nil, err
	}
	p := groupsPage{rights: s.rights(q), choice: c, Back: address(q)}
	for i := range queues {
		name := queues[i].Name
		if queues[i].Groups == 0 {
			continue
		}
		groups, err := read(q.ctx, s.fast, "groups "+name, func(ctx context.Context) ([]inspect.Group, error) {
			return q.ins.Groups(ctx, name)
		})
		if err != nil {
			if err := p.fail(q, name, err); err != nil {
				return nil, err
			}
		}
		p.Rows = append(p.Rows, groups...)
		if more := queues[i].Groups - len(groups); more > 0 && err == nil {
			p.More = append(p.More, moreOf{name, more})
		}
	}
	return &page{Title: "Groups", Template: "groups", Data: &p}, nil
}

// fireGroup makes a group due: fields "queue", "key" and "function" say which.
func fireGroup(_ *site, q *request) (outcome, error) {
	queue, key := q.args.Get("queue"), q.args.Get("key")
	n, err := q.ins.FireGroup(q.ctx, queue, key, q.args.Get("function"))
	if n == 0 {
		return outcome{}, err
	}
	out := outcome{Text: fmt.Sprintf("Group %s of queue %s is due now: a worker combines its calls.", key, queue)}
	if err != nil {
		out.Text, out.Bad = out.Text+" "+err.Error(), true
	}
	return out, nil
}
