package workermain

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/godelayed/delayed/internal/nearest"
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
		near := slices.MinFunc(known,
			func(a, b string) int { return cmp.Compare(nearest.Distance(name, a), nearest.Distance(name, b)) })
		errs = append(errs, fmt.Errorf("unknown environment variable %s: did you mean %s? The prefix %s is for "+
			"settings "+
			"of workers", name, near, variables))
	}
	return errors.Join(errs...)
}
