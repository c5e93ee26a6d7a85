package call

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/godelayed/delayed/inspect"
)

func function(variadic bool, optional int, types ...string) *inspect.Function {
	f := &inspect.Function{Path: "example.com/app/mail.Send", Variadic: variadic, Optional: optional}
	for _, t := range types {
		f.Parameters = append(f.Parameters, inspect.Parameter{Type: t, Shape: shape(t)})
	}
	return f
}

// shape returns the shape of a type that is written as in Go. Type mail.User has the fields Name, Age, Photo, Tags and
// Boss, which is another one.
func shape(text string) *inspect.Shape {
	s := &inspect.Shape{Length: -1}
	if rest, ok := strings.CutPrefix(text, "*"); ok {
		s.Kind, s.Elem = "optional", shape(rest)
		return s
	}
	if before, rest, ok := strings.Cut(text, "]"); ok && text != "[]byte" {
		s.Elem = shape(rest)
		if key, ok := strings.CutPrefix(before, "map["); ok {
			s.Kind, s.Key = "map", shape(key)
		} else if s.Kind = "list"; before != "[" {
			s.Length, _ = strconv.Atoi(before[1:])
		}
		return s
	}
	kinds := map[string]string{
		"int": "int64", "uint": "uint64", "[]byte": "bytes", "time.Time": "time", "time.Duration": "int64",
		"mail.User": "struct",
	}
	if s.Kind = kinds[text]; s.Kind == "" {
		s.Kind = text
	}
	if s.Kind == "struct" {
		s.Name = "example.com/app/mail.User"
		s.Fields = []inspect.Field{
			{Name: "Name", Shape: shape("string")},
			{Name: "Age", Shape: shape("int8")},
			{Name: "Photo", Shape: shape("[]byte")},
			{Name: "Tags", Shape: shape("[]string")},
			{Name: "Boss", Shape: &inspect.Shape{Kind: "optional", Length: -1, Elem: s}},
		}
	}
	return s
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fn   *inspect.Function
		args string // with | between them
		want string // a type and a value for each argument, or an error
	}{
		{
			nil, `42|-1|18446744073709551615|1.5|"x"|null|true|[1,{"a":2}]`,
			"int64 42|int64 -1|uint64 18446744073709551615|float64 1.5|string x|<nil> <nil>|bool true|" +
				"[]interface {} [1 map[a:2]]",
		},
		{nil, `en`, `argument 1: expected JSON, such as 42, true or '"text"' with both kinds of quotes, found "en"`},
		{nil, `1 2`, "expected JSON"},
		{function(false, 0, "int", "string"), `42|"en"`, "int64 42|string en"},
		{function(false, 0, "int", "string"), `42`, "expected the arguments of mail.Send(int, string), found 1"},
		{function(false, 0, "int", "string"), `42|"en"|1`, "found 3"},
		{function(false, 1, "int", "string"), `42`, "int64 42"},
		{function(false, 0, "int"), `"42"`, `expected a whole number from -9223372036854775808 to 9223372036854775807`},
		{function(false, 0, "int8"), `128`, "expected a whole number from -128 to 127, found 128"},
		{function(false, 0, "int8"), `-128`, "int64 -128"},
		{function(false, 0, "uint8"), `256`, "expected a whole number from 0 to 255, found 256"},
		{function(false, 0, "uint64"), `18446744073709551615`, "uint64 18446744073709551615"},
		{function(false, 0, "uint"), `-1`, "expected a whole number from 0 to 18446744073709551615"},
		{function(false, 0, "int"), `1.0`, "expected a whole number"},
		{function(false, 0, "float64"), `3`, "float64 3"},
		{function(false, 0, "float64"), `"3"`, "expected a number"},
		{function(false, 0, "bool"), `1`, "expected true or false, found 1"},
		{function(false, 0, "string"), `1`, "expected a text in quotes, found 1"},
		{function(false, 0, "string"), `null`, "expected a text in quotes, found null"},
		{function(false, 0, "[]byte"), `"AP8="`, "[]uint8 [0 255]"},
		{function(false, 0, "[]byte"), `"?"`, "expected bytes in base64"},
		{function(false, 0, "time.Time"), `"2026-01-31T15:04:05Z"`, "time.Time 2026-01-31 15:04:05 +0000 UTC"},
		{function(false, 0, "time.Time"), `17`, "expected a time such as"},
		{function(false, 0, "time.Duration"), `"1m"`, "int64 60000000000"},
		{function(false, 0, "*int"), `null`, "<nil> <nil>"},
		{function(false, 0, "*int"), `7`, "int64 7"},
		{function(false, 0, "[]int"), `[1,2]`, "[]interface {} [1 2]"},
		{function(false, 0, "[]int"), `[1,"x"]`, "element 2: expected a whole number"},
		{function(false, 0, "[2]int"), `[1]`, "expected an array for [2]int"},
		{function(false, 0, "map[string]bool"), `{"a":true}`, "map[string]interface {} map[a:true]"},
		{function(false, 0, "map[int]string"), `{"7":"x"}`, "map[interface {}]interface {} map[7:x]"},
		{function(false, 0, "map[int]string"), `{"x":"x"}`, `key "x": expected a whole number`},
		{function(false, 0, "map[string]int"), `[]`, "expected an object for map[string]int"},
		{function(false, 0, "mail.User"), `{"Name":"Ann","Age":7}`, "map[string]interface {} map[Age:7 Name:Ann]"},
		{
			function(false, 0, "*mail.User"), `{"Name":"Ann","Boss":{"Age":50,"Boss":null}}`,
			"map[string]interface {} map[Boss:map[Age:50 Boss:<nil>] Name:Ann]",
		},
		{
			function(false, 0, "[]mail.User"), `[{"Boss":{"age":7}}]`,
			`element 1: field Boss: expected fields of mail.User, Name, Age, Photo, Tags, Boss, found "age"`,
		},
		{function(false, 0, "mail.User"), `{"Age":"old"}`, "field Age: expected a whole number from -128 to 127"},
		{function(false, 0, "mail.User"), `7`, "expected an object for mail.User, found 7"},
		{function(false, 0, "any"), `1`, "int64 1"},
		{function(true, 0, "int", "[]string"), `1|"a"|"b"`, "int64 1|[]interface {} [a b]"},
		{function(true, 0, "int", "[]string"), `1`, "int64 1|[]interface {} []"},
		{function(true, 0, "int", "[]string"), `1|2`, "argument 2 of mail.Send(int, ...string): expected a text"},
	} {
		args, err := Arguments(strings.Split(c.args, "|"), c.fn)
		var parts []string
		for _, a := range args {
			parts = append(parts, fmt.Sprintf("%T %v", a, a))
		}
		got := strings.Join(parts, "|")
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%s: found %s, expected %s", c.args, got, c.want)
		}
	}
}
