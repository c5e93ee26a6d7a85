package document

import (
	"time"

	"github.com/godelayed/delayed/inspect"
)

// Groups is the groups of calls that wait.
type Groups struct {
	Groups []Group `json:"groups"`
}

// Group is a group of calls that waits for more of them.
type Group struct {
	Queue    string     `json:"queue"`
	Key      string     `json:"key"`
	Function string     `json:"function"`
	Size     int        `json:"size"`
	Due      *time.Time `json:"due"`
}

// GroupsOf describes groups.
func GroupsOf(groups []inspect.Group) Groups {
	return Groups{each(groups, func(g *inspect.Group) Group {
		return Group{g.Queue, g.Key, g.Function, g.Size, Stamp(g.Due)}
	})}
}
