// Package nearest finds the name that somebody meant who has misspelled one.
package nearest

import "strings"

// Distance returns how many bytes to insert, delete or replace to turn a into b.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// mostPaths and mostBytes bound how many paths are compared, and how long they are.
const mostPaths, mostBytes = 5_000, 200

// Path returns the path of a function that is most like a given one: what follows the last slash differs in at most a
// third of its bytes, or in case. A name without a package is compared with the last words of the paths. It returns ""
// if there is none.
func Path(given string, paths []string) (near string) {
	if given == "" || len(given) > mostBytes {
		return ""
	}
	word := !strings.ContainsAny(given, "./:")
	least := [2]int{len(afterLast(given, "/"))/3 + 1}
	for _, path := range paths[:min(len(paths), mostPaths)] {
		if len(path) > mostBytes {
			continue
		}
		theirs := afterLast(path, "/")
		if word {
			theirs = afterLast(path, ".:")
		}
		ours := strings.ToLower(afterLast(given, "/"))
		if gap := len(theirs) - len(ours); max(gap, -gap) > least[0] {
			continue
		}
		d := [2]int{Distance(ours, strings.ToLower(theirs)), 0}
		if d[0] > least[0] || d[0] == least[0] && near == "" {
			continue
		}
		if d[1] = Distance(given, path); near == "" || d[0] < least[0] || d[1] < least[1] {
			near, least = path, d
		}
	}
	return near
}

// afterLast returns what follows the last of some characters in s; all of it if it has none.
func afterLast(s, chars string) string { return s[strings.LastIndexAny(s, chars)+1:] }
