package workermain

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/godelayed/delayed"
)

// parseOrder parses critical,mail as Strict and critical=6,mail=3 as Weighted. delayed.NewWorker checks the names.
func parseOrder(list string) (delayed.QueueOrder, error) {
	var strict delayed.Strict
	weighted := delayed.Weighted{}
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		i := strings.LastIndexByte(item, '=')
		if i < 0 {
			strict = append(strict, item)
			continue
		}
		name, weight := strings.TrimSpace(item[:i]), strings.TrimSpace(item[i+1:])
		n, err := strconv.Atoi(weight)
		if err != nil {
			return nil, fmt.Errorf("queue %q has weight %q: expected a whole number", name, weight)
		}
		if j := strings.LastIndexByte(name, '='); j >= 0 {
			if first, err := strconv.Atoi(strings.TrimSpace(name[j+1:])); err == nil {
				return nil, fmt.Errorf("queue %q has two weights, %d and %d: expected one", strings.TrimSpace(name[:j]),
					first, n)
			}
		}
		if _, twice := weighted[name]; twice {
			return nil, fmt.Errorf("queue %q is named twice", name)
		}
		weighted[name] = n
	}
	switch {
	case len(weighted) == 0:
		return strict, nil
	case len(strict) == 0:
		return weighted, nil
	}
	return nil, errors.New("expected a weight for every queue or for none, as in critical=6,mail=3 or critical,mail")
}

// showOrder is the opposite of parseOrder.
func showOrder(order delayed.QueueOrder) string {
	switch o := order.(type) {
	case delayed.Strict:
		return strings.Join(o, ",")
	case delayed.Weighted:
		var items []string
		for _, name := range slices.Sorted(maps.Keys(o)) {
			items = append(items, fmt.Sprintf("%s=%d", name, o[name]))
		}
		return strings.Join(items, ",")
	}
	return ""
}
