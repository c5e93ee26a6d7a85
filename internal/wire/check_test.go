package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/godelayed/delayed/internal/limits"
)

// unhex turns "93 01 02" into bytes.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatalf("hex %q: %v", s, err)
	}
	return b
}

func TestCheckAccepts(t *testing.T) {
	for name, in := range map[string]string{
		"nil": "c0", "true": "c3", "small int": "7f", "negative int": "e0", "uint8": "ccff", "uint16": "cdffff",
		"uint32": "ceffffffff",
		"uint64": "cfffffffffffffffff", "int8": "d080", "int16": "d18000", "int32": "d280000000",
		"int64":   "d38000000000000000",
		"float32": "ca7f800000", "float64": "cb7ff8000000000000", "empty str": "a0", "str": "a161", "str8": "d90161",
		"str16": "da000161",
		"str32": "db0000000161", "bin8": "c40100", "bin16": "c5000100", "bin32": "c60000000100", "empty array": "90",
		"array":   "9101",
		"array16": "dc000101", "array32": "dd0000000101", "empty map": "80", "map": "81a16101", "map16": "de0001a16101",
		"map32": "df00000001a16101", "int key": "810101", "negative key": "81ff01", "bool key": "81c301",
		"map in key's value": "8101810190",
		"timestamp 32":       "d6ff00000000", "timestamp 64": "d7ff0000000000000000",
		"timestamp 96":            "c70cff000000000000000000000000",
		"wide header for nothing": "dd00000000", "array of maps": "9281018082028003c0",
	} {
		if err := Check(unhex(t, in), Default); err != nil {
			t.Errorf("%s (%s): %v", name, in, err)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"nothing", "", "at byte 0: expected 1 value more, found only 0 bytes"},
		{"two values", "0101", "at byte 1: expected the end, found 1 byte more"},
		{"the byte that is never used", "c1", "at byte 0: expected a value, found byte 0xc1"},
		{"float32 cut off", "ca000000", "at byte 0: expected a whole value, found float that is cut off"},
		{"str without its length", "d9", "string that is cut off"},
		{"str longer than the rest", "a261", "string that is cut off"},
		{"str32 of 4 GiB", "dbffffffff", "string that is cut off"},
		{"bin32 of 4 GiB", "c6ffffffff00", "binary that is cut off"},
		{"array32 of 4 Gi values", "ddffffffff", "array that is cut off"},
		{"map32 of 4 Gi pairs", "dfffffffff", "map that is cut off"},
		{"map32 whose double overflows", "df80000000c0", "map that is cut off"},
		{"array with a value missing", "9201", "array that is cut off"},
		{
			"inner array takes what the outer was promised", "9391c0c0",
			"at byte 2: expected 3 values more, found only 2 bytes",
		},
		{"nil key", "81c001", "at byte 1: expected a string, integer or boolean as map key, found nil"},
		{"float key", "81ca0000000001", "as map key, found float"},
		{"binary key", "81c40061", "as map key, found binary of 0 bytes"},
		{"array key", "819001", "as map key, found array of 0 values"},
		{"map key", "818001", "as map key, found map of 0 pairs"},
		{"timestamp key", "81d6ff0000000001", "as map key, found timestamp"},
		{"extension 1", "d40100", "timestamps as the only extension, found extension type 1"},
		{"extension 8 of another type", "d7050000000000000000", "found extension type 5"},
		{"ext8 of 5 bytes, type -1", "c705ff0000000000", "found timestamp that is out of range or cut off"},
		{"ext32", "c90000000105aa", "found extension type 5"},
		{"extension cut off", "d6", "extension that is cut off"},
		{"timestamp with too many nanoseconds", "d7ffee6b280300000000", "found timestamp that is out of range"},
	} {
		err := Check(unhex(t, c.in), Default)
		var fe *FormatError
		if !errors.As(err, &fe) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s (%s): got %v, want %q", c.name, c.in, err, c.want)
		}
	}
}

func TestCheckLimits(t *testing.T) {
	nested := func(n int, open string, last ...byte) []byte {
		return append(bytes.Repeat([]byte(open), n), last...)
	}
	flat := func(n int) []byte {
		return append(AppendArrayHeader(nil, n), make([]byte, n)...)
	}
	for _, c := range []struct {
		name string
		in   []byte
		lim  Limits
		ok   bool
	}{
		{"depth 32", nested(31, "\x91", 0x90), Default, true},
		{"depth 33", nested(32, "\x91", 0x90), Default, false},
		{"depth 33 with something in it", nested(33, "\x91", 0), Default, false},
		{"depth 32 of maps", nested(31, "\x81\x01", 0x80), Default, true},
		{"depth 33 of maps", nested(32, "\x81\x01", 0x80), Default, false},
		{
			"side by side is not deep", append(AppendArrayHeader(nil, 40), bytes.Repeat([]byte{0x91, 0x90}, 40)...),
			Limits{1e6, 1e6, 3, 9},
			true,
		},
		{"depth 0", []byte{0x90}, Limits{1e6, 1e6, 0, 9}, false},
		{"scalar at depth 0", []byte{0x01}, Limits{1e6, 1e6, 0, 9}, true},
		{"negative depth", []byte{0x90}, Limits{1e6, 1e6, -1, 9}, false},
		{"depth beyond the cap", nested(63, "\x91", 0x90), Limits{1e6, 1e6, 1000, 9}, false},
		{"depth at the cap", nested(62, "\x91", 0x90), Limits{1e6, 1e6, 1000, 9}, true},
		{"65,536 values", flat(65535), Default, true},
		{"65,537 values", flat(65536), Default, false},
		{
			"65,536 values in pairs", append(AppendMapHeader(nil, 32767), bytes.Repeat([]byte{1, 2}, 32767)...),
			Default,
			true,
		},
		{
			"65,537 values in pairs", append(AppendMapHeader(nil, 32768), bytes.Repeat([]byte{1, 2}, 32768)...),
			Default,
			false,
		},
		{
			"values of several arrays add up", append([]byte{0x92}, append(flat(40000), flat(40000)...)...), Default,
			false,
		},
		{"1 MiB", AppendBin(nil, make([]byte, 1<<20-5)), Default, true},
		{"1 MiB and a byte", AppendBin(nil, make([]byte, 1<<20-4)), Default, false},
		{"no values", []byte{0x01}, Limits{Bytes: 9, Depth: 9}, false},
		{"the zero limits", []byte{0x01}, Limits{}, false},
	} {
		if err := Check(c.in, c.lim); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Check refuses every proper prefix of a value, and every value with something after it.
func TestCheckTruncated(t *testing.T) {
	for _, v := range sampleValues(t) {
		for n := range v {
			if err := Check(v[:n], Default); err == nil {
				t.Errorf("%x: accepted its first %d bytes", v, n)
			}
		}
		if err := Check(append(bytes.Clone(v), 0), Default); err == nil {
			t.Errorf("%x: accepted a byte behind it", v)
		}
	}
}

// sampleValues returns well-formed values of all kinds.
func sampleValues(t testing.TB) [][]byte {
	t.Helper()
	var out [][]byte
	for _, s := range []string{
		"c0", "cb3ff8000000000000", "d9056162636465", "c403010203", "93010203", "82a16101a16292c0c3", "d6ff5bb96c80",
		"c70cff075bcd15ffffffffffffffff",
		"94a2696492a16101c4020102d7ff1dcd650068b0f5c8", "8301a2616202930102030383a16180a16290a163a0",
		"dc0002cf0000000000000001d38000000000000000",
	} {
		out = append(out, unhex(t, s))
	}
	return out
}

// Check refuses the hostile messages of RELIABILITY.md section 4 quickly and without taking memory.
func TestCheckBombs(t *testing.T) {
	headers := func(n int, header string) []byte { // each header claims all the bytes that remain
		var b []byte
		for len(b)+5 <= n {
			rest := n - len(b) - 5
			b = append(b, header[0], byte(rest>>24), byte(rest>>16), byte(rest>>8), byte(rest))
		}
		return b
	}
	wide := Limits{Bytes: math.MaxInt, Elems: math.MaxInt, Depth: 1000}
	for name, in := range map[string][]byte{
		"64 KiB of array headers":  headers(64<<10, "\xdd"),
		"64 KiB of map headers":    headers(64<<10, "\xdf"),
		"5 MB of nesting":          bytes.Repeat([]byte{0x91}, 5_000_000),
		"5 MB of nested maps":      bytes.Repeat([]byte{0x81, 0x01}, 2_500_000),
		"1 MiB of nesting":         bytes.Repeat([]byte{0x91}, 1<<20),
		"headers that say nothing": bytes.Repeat([]byte{0xdc, 0, 1}, 100_000),
	} {
		if err := Check(in, wide); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if err := Check(in, Default); err == nil {
			t.Errorf("%s: accepted within the default limits", name)
		}
		if n := allocated(func() { _ = Check(in, wide) }); n > 16<<10 {
			limits.Errorf(t, "%s: %d bytes allocated", name, n)
		}
	}
}

func TestCheckAllocatesNothing(t *testing.T) {
	limits.Only(t)
	v := sampleValues(t)
	if n := testing.AllocsPerRun(100, func() {
		for _, v := range v {
			if err := Check(v, Default); err != nil {
				t.Fatal(err)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The loose rules, for values that only Python reads, differ from the strict ones only in map keys and extensions.
func TestSkimLoose(t *testing.T) {
	for _, in := range []string{
		"81c001", "81ca0000000001", "81c40001", "819001", "818001", "d40100", "c90000000105aa",
		"c7000a", "d801000102030405060708090a0b0c0d0e0f",
	} {
		b := unhex(t, in)
		if _, _, err := skim(b, 0, 100, 10, strict); err == nil {
			t.Errorf("%s: the strict rules accept it", in)
		}
		next, _, err := skim(b, 0, 100, 10, loose)
		if err != nil || next != len(b) {
			t.Errorf("%s: next %d, %v", in, next, err)
		}
	}
	for _, in := range []string{"c1", "d401", "c9000000", "c9ffffffff05", "91", "8190"} {
		if _, _, err := skim(unhex(t, in), 0, 100, 10, loose); err == nil {
			t.Errorf("%s: accepted", in)
		}
	}
}
