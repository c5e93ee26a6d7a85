package main

import (
	"fmt"
	"strconv"
)

// number prints a value with two or three digits or, above a thousand, without a fraction.
func number(v float64) string {
	switch {
	case v >= 999.5:
		return count(int(v + 0.5))
	case v >= 9.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 0.095 || v == 0:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.2g", v)
	}
}

// count prints a whole number.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
