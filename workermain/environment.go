package workermain

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// variables is the prefix of the names of environment variables.
const variables = "DELAYED_"

// ofServices matches variables that Kubernetes sets in each container for services, such as one named delayed.
var ofServices = regexp.MustCompile(
	`_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// checkEnvironment returns an error for each variable of environ that has the prefix but is no setting. It does not
// show values.
func (s *settings) checkEnvironment(environ []string) error {
	var known []string
	for _, o := range s.options {
		known = append(known, o.env...)
	}
	var errs []error
	for _, pair := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, variables) || value == "" || slices.Contains(known, name) ||
			ofServices.MatchString(name) {
			continue
		}
		nearest := slices.MinFunc(known,
			func(a, b string) int { return cmp.Compare(distance(name, a), distance(name, b)) })
		errs = append(errs, fmt.Errorf("unknown environment variable %s: did you mean %s? The prefix %s is for "+
			"settings "+
			"of workers", name, nearest, variables))
	}
	return errors.Join(errs...)
}

// distance returns how many bytes to insert, delete or replace to turn a into b.
func distance(a, b string) int {
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
