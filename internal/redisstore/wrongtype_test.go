package redisstore

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestKeyTypes holds the types of keys against lua/README.md.
func TestKeyTypes(t *testing.T) {
	page, err := os.ReadFile("../../lua/README.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `N([a-z_]*:?)(?:<[a-z]+>)?` \\| [^|]+ \\| ([a-z]+) \\|").
		FindAllStringSubmatch(string(page), -1) {
		listed[row[1]] = true
		if row[1] == "" {
			continue
		}
		if got := keyTypes[row[1]]; got != row[2] {
			t.Errorf("N%s is %q, expected %q", row[1], got, row[2])
		}
		if got := TypeOfKey("app:mail" + row[1] + strings.Repeat("x_retry",
			strings.Count(row[1], ":"))); got != row[2] {
			t.Errorf("N%s is taken for %q, expected %q", row[1], got, row[2])
		}
	}
	for key := range keyTypes {
		if !listed[key] {
			t.Errorf("%s is not on the page", key)
		}
	}
	if len(listed) != len(keyTypes)+1 || TypeOfKey("app:mail") != "list" {
		t.Errorf("%d keys on the page, %d in the table", len(listed), len(keyTypes))
	}
}
