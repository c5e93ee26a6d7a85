package wire

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Structs of three versions of a program.
type (
	line1 struct{ SKU string }
	line2 struct {
		Count int
		SKU   string
	}
	cart1 struct {
		ID    int
		Lines []line1
		ByKey map[string]*line1
		Pair  [2]line1
		Any   any
	}
	cart2 struct {
		Note  string `msgpack:"note.text"`
		Lines []line2
		ByKey map[string]*line2
		Pair  [2]line2
		ID    int
		Any   any
	}
)

func TestFieldsByNameMayMove(t *testing.T) {
	type first struct{ First, Last string }
	type last struct {
		Last, First string
		Age         *int
	}
	b := encode(t, first{"Ada", "Lovelace"})
	var got last
	if _, err := codecOf(t, reflect.TypeFor[last]()).Decode(b, reflect.ValueOf(&got).Elem()); err != nil ||
		got != (last{First: "Ada", Last: "Lovelace"}) {
		t.Errorf("%x: found %+v, %v", b, got, err)
	}
}

func TestUnknownFields(t *testing.T) {
	old, current := codecOf(t, reflect.TypeFor[cart1]()), codecOf(t, reflect.TypeFor[cart2]())
	full := cart2{ID: 1, Lines: []line2{{}, {}}, ByKey: map[string]*line2{"secret": {}, "none": nil}, Any: line2{}}
	b := encode(t, full)
	want := []string{`."note.text"`, ".Lines[].Count", ".ByKey[].Count", ".Pair[].Count"}
	found := old.Unknown(b, 10)
	if !slices.Equal(found, want) {
		t.Errorf("expected %q, found %q", want, found)
	}
	for _, path := range found {
		if !old.Lacks(path) || current.Lacks(path) {
			t.Errorf("%s: lacked by the old version: %v, by the new one: %v", path, old.Lacks(path),
				current.Lacks(path))
		}
	}
	if found := old.Unknown(b, 2); !slices.Equal(found, want[:2]) {
		t.Errorf("at most two: found %q", found)
	}
	if found := current.Unknown(b, 10); found != nil {
		t.Errorf("the new version lacks %q", found)
	}
	for n := range b {
		old.Unknown(b[:n], 10) // it stops where the bytes end
	}
	// A part that does not fit the type does not keep Unknown from searching the rest.
	wrong := encode(t, struct {
		ID    string
		Lines string
		Note  int
	}{})
	if found := old.Unknown(wrong, 10); !slices.Equal(found, []string{".Note"}) {
		t.Errorf("beside fields of other types: found %q", found)
	}
	positional, _, err := current.AppendAs(ByPosition, nil, reflect.ValueOf(full))
	if err != nil {
		t.Fatal(err)
	}
	if found := old.Unknown(positional, 10); found != nil {
		t.Errorf("by position there are no names: found %q", found)
	}
	if found := codecOf(t, reflect.TypeFor[map[string]any]()).Unknown(b, 10); found != nil {
		t.Errorf("a map has no fields: found %q", found)
	}
}

func TestFieldPaths(t *testing.T) {
	codec := codecOf(t, reflect.TypeFor[[]point]())
	for key, want := range map[string]string{
		"Zed": "[].Zed", "z-1_": "[].z-1_", "": `[].""`, "a.b": `[]."a.b"`, "a[]": `[]."a[]"`, `"`: `[]."\""`,
		"a\nb": `[]."a\nb"`, "é": `[]."\u00e9"`,
	} {
		b := append(AppendString(append(AppendArrayHeader(nil, 1), 0x81), key), 1)
		found := codec.Unknown(b, 5)
		if len(found) != 1 || found[0] != want {
			t.Errorf("%q: found %q, expected %q", key, found, want)
			continue
		}
		if !codec.Lacks(found[0]) {
			t.Errorf("%s is not lacked", found[0])
		}
	}
	// Unknown cuts a long path, and Lacks is false for it.
	for _, key := range []string{strings.Repeat("x", 200), strings.Repeat("é", 200), strings.Repeat("\x00", 120)} {
		b := append(AppendString(append(AppendArrayHeader(nil, 1), 0x81), key), 1)
		found := codec.Unknown(b, 5)
		if len(found) != 1 || len(found[0]) > maxFieldPath+len("…") || codec.Lacks(found[0]) {
			t.Errorf("%.20q...: found %q", key, found)
		}
	}
	for _, path := range []string{
		"", "[]", "[].X", "[].X.Y", "[].X[]", "[][]", ".X", "X", "[].", "[]Zed", `[]."Z`,
		"[].Zed…", "nonsense",
	} {
		if codec.Lacks(path) {
			t.Errorf("%q leads nowhere, but is lacked", path)
		}
	}
	if !codec.Lacks("[].Zed.Y") {
		t.Error("what is in an unknown field is not lacked")
	}
}
