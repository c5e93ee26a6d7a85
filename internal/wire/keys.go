package wire

// TextKeys reports whether all keys of the maps in b are strings. Check must have accepted b.
func TextKeys(b []byte) bool {
	_, ok := textKeys(b, 0)
	return ok
}

// textKeys is TextKeys for the value at b[i:]; next is the position after that value. It may recurse, since values are
// nested at most depthCap deep.
func textKeys(b []byte, i int) (next int, ok bool) {
	pairs, next := mapAt(b, i)
	if next >= 0 {
		for range pairs {
			_, end := strAt(b, next)
			if end < 0 {
				return next, false
			}
			if next, ok = textKeys(b, end); !ok {
				return next, false
			}
		}
		return next, true
	}
	values, next := arrayAt(b, i)
	if next >= 0 {
		for range values {
			if next, ok = textKeys(b, next); !ok {
				return next, false
			}
		}
		return next, true
	}
	next, _, err := skim(b, i, 1, 0, loose)
	return next, err == nil
}
