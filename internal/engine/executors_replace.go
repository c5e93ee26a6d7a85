package engine

// replace puts another executor in the place of one whose handler does not return, if there is a spare one. stuck is
// false if the handler has returned. Whatever becomes of it later counts, but its executor ends then.
func (e *executors) replace(i int, c *Claim) (stuck, replaced bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.slots[i].Load() != c {
		return false, false
	}
	c.stuck = true
	e.busy--
	if c.suspicion > 0 {
		e.suspectLeft(c) // others may run beside it now
	}
	e.checkUsedUp()
	e.stuck.Add(1) // before over may get to zero: who waits for all, waits for those first
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

// freeIfReplaced says whether another executor has taken the place of one because of the task that it ran last. Then its slot
// is free. e.mu is held.
func (e *executors) freeIfReplaced(i int, last *Claim) bool {
	if !last.stuck {
		return false
	}
	e.slots[i].Store(nil)
	e.spare = append(e.spare, i)
	return true
}

// reserve provides for so many executors that take the place of others. It is called before start.
func (e *executors) reserve(n int) {
	for i := range n {
		e.spare = append(e.spare, e.n+i)
	}
	e.makeSlots(e.n + n)
}

// isStuck says whether a claim is one of a stuck handler.
func (e *executors) isStuck(c *Claim) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return c.stuck
}
