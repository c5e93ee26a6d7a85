package api

import "github.com/godelayed/delayed/inspect/document"

func apiGroups(s *shared, c *apiCall) (v document.Groups, err error) {
	_, names, err := c.described(s)
	if err != nil {
		return v, err
	}
	groups, err := c.Ins.Groups(c.Ctx, names...)
	return document.GroupsOf(groups), err
}

// GroupKey names a group.
type groupBody struct {
	Key      string `json:"key"`
	Function string `json:"function,omitempty"` // only this function's; else those of all functions
}

func apiFire(s *shared, c *apiCall, g *groupBody) (v document.Did, err error) {
	q, err := c.queue(s)
	if err != nil {
		return v, err
	}
	_, err = c.Ins.FireGroup(c.Ctx, q.Name, g.Key, g.Function)
	return did("fire", g.Key), err
}
