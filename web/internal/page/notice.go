package page

import (
	"crypto/rand"
	"sync"
)

// notices are texts that the next page shows, after an action has sent the browser there. The address of that page has
// only their key, so that nobody can make a page say something by a link.
type notices struct {
	mu    sync.Mutex
	texts map[string]notice
	order []string
}

type notice struct {
	Text string
	Bad  bool
	user string // who may see it
}

const maxNotices = 1000

// add keeps a notice and returns its key.
func (n *notices) add(v notice) string {
	key := rand.Text()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.texts == nil {
		n.texts = map[string]notice{}
	}
	if len(n.order) == maxNotices {
		delete(n.texts, n.order[0])
		n.order = n.order[1:]
	}
	n.texts[key] = v
	n.order = append(n.order, key)
	return key
}

// get returns the notice of a key for a user.
func (n *notices) get(key, user string) (notice, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	v, ok := n.texts[key]
	return v, ok && v.user == user
}
