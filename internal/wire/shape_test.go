package wire

import (
	"reflect"
	"testing"
)

// Types that functions declare may share a name: each keeps its own shape, and its name stays the same.
func TestShapesOfTypesOfOneName(t *testing.T) {
	first := func() reflect.Type {
		type twin struct{ A int }
		return reflect.TypeFor[twin]()
	}()
	second := func() reflect.Type {
		type twin struct{ B string }
		return reflect.TypeFor[twin]()
	}()
	var s Shapes
	names := map[string]string{}
	for _, typ := range []reflect.Type{first, second, first, second} {
		ref, err := s.Of(typ)
		if err != nil {
			t.Fatal(err)
		}
		field := typ.Field(0).Name
		shape := s.Types[ref.Name]
		if ref.Kind != "ref" || shape == nil || len(shape.Fields) != 1 || shape.Fields[0].Name != field {
			t.Errorf("the type with field %s refers to %q, which is %+v", field, ref.Name, shape)
		}
		if before, seen := names[field]; seen && before != ref.Name {
			t.Errorf("the type with field %s is called %q and later %q", field, before, ref.Name)
		}
		names[field] = ref.Name
	}
	if len(s.Types) != 2 {
		t.Errorf("%d types, expected 2", len(s.Types))
	}
}
