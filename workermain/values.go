package workermain

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
)

// These methods add settings whose defaults are what the variables hold.

func (s *settings) text(name, value, help string, p *string) {
	s.add(name, value, help, *p, func(v string) error {
		*p = v
		return nil
	})
}

func (s *settings) number(name, help string, p *int, least int) {
	s.add(name, "n", help, strconv.Itoa(*p), func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < least {
			return fmt.Errorf("expected a whole number from %d", least)
		}
		*p = n
		return nil
	})
}

func (s *settings) duration(name, help string, p *time.Duration, least time.Duration) {
	s.add(name, "duration", help, max(*p, 0).String(), func(v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d < least {
			return fmt.Errorf("expected a duration from %v, such as 1m30s", least)
		}
		*p = d
		return nil
	})
}

// grace adds a duration of which 0 means none. In a WorkerConfig 0 is the default, and a negative one means none.
func (s *settings) grace(name, help string, p *time.Duration) {
	s.duration(name, help, p, 0)
	o := &s.options[len(s.options)-1]
	set := o.set
	o.set = func(v string) error {
		err := set(v)
		if err == nil && *p == 0 {
			*p = -1
		}
		return err
	}
}

func (s *settings) toggle(name, help string, p *bool) {
	s.add(name, "", help, strconv.FormatBool(*p), func(v string) (err error) {
		*p, err = boolean(v)
		return err
	})
}

func (s *settings) size(name, help string, p *int64) {
	s.add(name, "size", help, showSize(*p), func(v string) (err error) {
		*p, err = parseSize(v)
		return err
	})
}

func boolean(v string) (bool, error) {
	b, err := strconv.ParseBool(v)
	if err != nil {
		return false, errors.New("expected true or false")
	}
	return b, nil
}

// sizeUnits are the units of sizes, the largest first.
var sizeUnits = []struct {
	name  string
	shift int
}{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}}

// parseSize parses 512MiB, 512M or a number of bytes.
func parseSize(v string) (int64, error) {
	digits, shift := v, 0
	for _, unit := range sizeUnits {
		for _, suffix := range []string{unit.name, unit.name[:1]} {
			if cut, ok := strings.CutSuffix(digits, suffix); ok && shift == 0 {
				digits, shift = cut, unit.shift
			}
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64>>shift {
		return 0, errors.New("expected a number of bytes, or one with KiB, MiB or GiB, such as 512MiB")
	}
	return n << shift, nil
}

// showSize is the opposite of parseSize.
func showSize(n int64) string {
	for _, unit := range sizeUnits {
		if n > 0 && n%(1<<unit.shift) == 0 {
			return fmt.Sprintf("%d%s", n>>unit.shift, unit.name)
		}
	}
	return strconv.FormatInt(n, 10)
}

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

func (s *settings) setListen(v string) error {
	if _, _, err := net.SplitHostPort(v); err != nil {
		return errors.New("expected host:port, such as localhost:8080, or :8080 for all addresses of the machine")
	}
	s.listen = v
	return nil
}

var levels = map[string]logrus.Level{
	"debug": logrus.DebugLevel, "info": logrus.InfoLevel, "warn": logrus.WarnLevel, "error": logrus.ErrorLevel,
}

func (s *settings) setLevel(v string) error {
	level, ok := levels[v]
	if !ok {
		return errors.New("expected debug, info, warn or error")
	}
	s.level = level
	return nil
}

func (s *settings) setFormat(v string) error {
	if v != "text" && v != "json" {
		return errors.New("expected text or json")
	}
	s.json = v == "json"
	return nil
}
