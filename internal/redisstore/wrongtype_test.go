package redisstore

import (
	"strings"
	"testing"
)

// TestKeyTypes holds the types of keys against lua/README.md.
func TestKeyTypes(t *testing.T) {
	listed := map[string]bool{}
	for _, k := range readDictionary().keys {
		listed[k.suffix] = true
		if k.suffix == "" {
			continue
		}
		if got := keyTypes[k.suffix]; got != k.kind {
			t.Errorf("N%s is %q, expected %q", k.suffix, got, k.kind)
		}
		if got := TypeOfKey("app:mail" + k.suffix + strings.Repeat("x_retry",
			strings.Count(k.suffix, ":"))); got != k.kind {
			t.Errorf("N%s is taken for %q, expected %q", k.suffix, got, k.kind)
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
