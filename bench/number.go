package main

import "fmt"

// number prints a value with two or three digits or, above a thousand, without a fraction.
func number(v float64) string {
	switch {
	case v >= 999.5:
		s := fmt.Sprintf("%.0f", v)
		for i := len(s) - 3; i > 0; i -= 3 {
			s = s[:i] + "," + s[i:]
		}
		return s
	case v >= 9.95:
		return fmt.Sprintf("%.0f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}
