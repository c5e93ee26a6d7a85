package top

import (
	"os"
	"strings"
	"testing"
)

// TestPage holds docs/TOP.md against the keys of the screens and the words of filters.
func TestPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../docs/TOP.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	has := func(what, code string) {
		t.Helper()
		if !strings.Contains(page, "`"+code+"`") {
			t.Errorf("docs/TOP.md does not name %s `%s`", what, code)
		}
	}
	for name, keys := range screens {
		b := newBench(t, 80, 24)
		b.keys(keys...)
		for _, key := range b.m.current().keys() {
			if len([]rune(key.key)) == 1 {
				has("the key of "+name, key.key)
				continue
			}
			for word := range strings.FieldsSeq(key.key) {
				has("the key of "+name, word)
			}
		}
		b.keys("esc")
	}
	for _, key := range append(append(everywhere, moveKeys...), sortKeys...) {
		for word := range strings.FieldsSeq(key.key) {
			has("the key", word)
		}
	}
	for _, word := range filterWords() {
		has("the filter", word+":")
	}
}
