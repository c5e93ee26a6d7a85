package engine

// replace starts another executor in place of number i, whose handler does not return, if there is a spare slot. stuck
// is false if the handler has returned. If it returns later, its outcome counts, but its executor ends.
func (e *executors) replace(i int, c *Claim) (stuck, replaced bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.slots[i].Load() != c {
		return false, false
	}
	c.stuck = true
	e.busy--
	if c.suspicion > 0 {
		e.suspectLeft(c) // other tasks may run beside it from now on
	}
	e.checkUsedUp()
	e.stuck.Add(1) // before sound.Done, so that drain waits for it
	defer e.sound.Done()
	n := len(e.spare)
	if n == 0 || e.stopped {
		e.n--
		return true, false
	}
	e.sound.Add(1)
	go e.loop(e.spare[n-1])
	e.spare = e.spare[:n-1]
	e.wakeFetcherIfRoom()
	return true, true
}

// freeIfReplaced reports whether executor i must end because its handler, which ran last, was stuck. If so, it frees
// the slot. e.mu is held.
func (e *executors) freeIfReplaced(i int, last *Claim) bool {
	if !last.stuck {
		return false
	}
	e.slots[i].Store(nil)
	e.spare = append(e.spare, i)
	return true
}

// reserve makes slots for n executors that replace stuck ones. It must be called before start.
func (e *executors) reserve(n int) {
	for i := range n {
		e.spare = append(e.spare, e.n+i)
	}
	e.makeSlots(e.n + n)
}

// isStuck reports whether the handler of a claim was given up.
func (e *executors) isStuck(c *Claim) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return c.stuck
}
