package function

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/godelayed/delayed/internal/catalog"
)

// A listing is made once for each set of functions, and its size is limited.
func TestListingIsBounded(t *testing.T) {
	var r Registry
	empty, _ := r.Listing()
	var list catalog.List
	if err := json.Unmarshal(empty, &list); err != nil || list.Version != catalog.Version || list.Functions == nil ||
		len(list.Functions) != 0 {
		t.Errorf("without functions: %s, %v", empty, err)
	}
	for i := range 1000 {
		fn := reflect.MakeFunc(reflect.TypeFor[func(map[string][]structOuter)](),
			func([]reflect.Value) []reflect.Value { return nil })
		if err := register(&r, Func(fn.Interface(), Name(fmt.Sprintf("example.com/app/mail.Function%d", i)))); err !=
			nil {
			t.Fatal(err)
		}
	}
	b, state := r.Listing()
	list = catalog.List{}
	if err := json.Unmarshal(b, &list); err != nil || len(b) > maxListing || len(list.Functions) < 100 ||
		len(list.Functions)+list.More != 1000 {
		t.Errorf("%d bytes, %d functions and %d more, %v", len(b), len(list.Functions), list.More, err)
	}
	if again, same := r.Listing(); &again[0] != &b[0] || same != state {
		t.Error("it was made twice")
	}
}
