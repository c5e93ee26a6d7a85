package delayedotel

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// Bounds of what attributes of metrics distinguish.
const (
	maxQueues    = 100
	maxFunctions = 200
	maxErrors    = 100
	// maxName is the most bytes of a name.
	maxName = 200
	// maxText is the most bytes of an error's text in a span.
	maxText = 1 << 10
)

// other stands for all names for which there is no room.
const other = "_OTHER"

// names bounds how many names metrics distinguish: the first ones.
type names struct {
	most  int
	mu    sync.RWMutex
	known map[string]bool
}

// of returns name as it may be an attribute, or other.
func (n *names) of(name string) string {
	name = text(name, maxName)
	n.mu.RLock()
	known := n.known[name]
	n.mu.RUnlock()
	if known {
		return name
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.known[name]:
	case len(n.known) >= n.most:
		return other
	case n.known == nil:
		n.known = map[string]bool{name: true}
	default:
		n.known[strings.Clone(name)] = true
	}
	return name
}

// text returns s as exporters take it: in UTF-8, and not too long.
func text(s string, most int) string {
	s = strings.ToValidUTF8(s[:min(len(s), most)], "\uFFFD") // which may make it longer
	if len(s) > most {
		for !utf8.RuneStart(s[most]) {
			most--
		}
		s = s[:most]
	}
	return s
}
