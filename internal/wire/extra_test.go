package wire

import (
	"strings"
	"testing"
)

func TestGatherIsChecked(t *testing.T) {
	message := func(value string) []byte { return []byte("\x93\xa1f\xc0\x82\xa1g\xa1k\xa2gp" + value) }
	for _, c := range []struct{ name, value, want string }{
		{"none", "\x90", `"gp" to be an array of 4 integers, found array of 0 values`},
		{"nil", "\xc0", "found nil"},
		{"too few", "\x93\x00\x00\x00", "found array of 3"},
		{"too many", "\x95\x00\x00\x00\x00\x00", "found array of 5"},
		{"text", "\x94\x00\xa1x\x00\x00", `"gp" to be an integer from 0 to`},
		{"negative", "\x94\xff\x00\x00\x00", "found integer"},
		{"fixed beyond 31 bits", "\x94\xce\x80\x00\x00\x00\x00\x00\x00", "from 0 to 2147483647"},
		{"size beyond 31 bits", "\x94\x00\x00\x00\xce\x80\x00\x00\x00", "from 0 to 2147483647"},
		{
			"grace beyond 63 bits", "\x94\x00\xcf\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00",
			"from 0 to 9223372036854775807",
		},
		{"zeros", "\x94\x00\x00\x00\x00", ""},
	} {
		m, err := Parse(message(c.value), Default)
		if c.want == "" {
			if err != nil || m.Meta.Extra.Gather == nil || *m.Meta.Extra.Gather != (Gather{}) {
				t.Errorf("%s: %+v, %v", c.name, m.Meta.Extra, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected an error with %s", c.name, err, c.want)
		}
	}
	if _, err := Parse([]byte("\x93\xa1f\xc0\x82\xa2gp\x94\x00\x00\x00\x00\xa2gp\x94\x00\x00\x00\x00"),
		Default); err == nil || !strings.Contains(err.Error(), `"gp" again`) {
		t.Errorf("twice: %v", err)
	}
}

func TestHeadersAreBounded(t *testing.T) {
	for _, c := range []struct {
		name    string
		headers map[string]string
		fits    bool
	}{
		{"8,192 bytes", map[string]string{"kk": strings.Repeat("v", 4094), "k": strings.Repeat("v", 4095)}, true},
		{
			"8,193 bytes, of which two are names",
			map[string]string{"a": strings.Repeat("v", 4096), "b": strings.Repeat("v", 4095)},
			false,
		},
		{"a name of 8,193 bytes", map[string]string{strings.Repeat("k", 8193): ""}, false},
	} {
		m := Message{Kind: GoExtended, Path: "f", Meta: Meta{Extra: &Extra{Headers: c.headers}}}
		_, err := Parse(m.Append(nil), Default)
		if c.fits != (err == nil) || err != nil && !strings.Contains(err.Error(), `"h" to hold at most 8192 bytes`) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestSkip(t *testing.T) {
	for _, c := range []struct {
		in, rest string
		values   int
	}{
		{"\x01", "", 1},
		{"\x01\x02", "\x02", 1},
		{"\x92\x01\xa1a\xc0", "\xc0", 3},
		{"\x82\x01\x91\x02\x03\x04\xc0", "\xc0", 6},
		{"\x90", "", 1},
	} {
		rest, values, err := Skip([]byte(c.in))
		if err != nil || string(rest) != c.rest || values != c.values {
			t.Errorf("%x: %x and %d values, %v, expected %x and %d", c.in, rest, values, err, c.rest, c.values)
		}
	}
	for _, in := range []string{"", "\x92\x01", "\xc1"} {
		if _, _, err := Skip([]byte(in)); err == nil {
			t.Errorf("%x: expected an error", in)
		}
	}
}
