// Package funcpath finds the path by which messages name a Go function, such as example.com/app/mail.Welcome or
// example.com/app/mail.(*Mailer).Send, and whether that path names only this function.
package funcpath

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxLen is the greatest length of a path in bytes.
const MaxLen = 512

// Kind says what a func value was made of. Only Plain and Method have a path that names one function in every build of
// a program.
type Kind uint8

// The kinds of func values.
const (
	Plain           Kind = iota + 1 // function declared at package level
	Method                          // method expression T.M or (*T).M; the first parameter is the receiver
	InterfaceMethod                 // method expression on an interface type
	MethodValue                     // v.M: all receivers share one path
	Closure                         // function literal: its number and its package change with edits and with inlining
	Generic                         // instance of a generic function: all share one path
	GenericMethod                   // method expression on an instance of a generic type: all share one path
	LocalMethod                     // method expression on a type without a name or declared inside a function
	Made                            // made by package reflect: all share one path
)

// String returns the kind as errors name it, with an article.
func (k Kind) String() string {
	switch k {
	case Plain:
		return "a function"
	case Method:
		return "a method expression"
	case InterfaceMethod:
		return "a method expression on an interface"
	case MethodValue:
		return "a method value"
	case Closure:
		return "a function literal"
	case Generic:
		return "an instance of a generic function"
	case GenericMethod:
		return "a method expression on an instance of a generic type"
	case LocalMethod:
		return "a method expression on a type that has no name outside its function"
	case Made:
		return "a function made by reflect"
	default:
		return "kind " + strconv.Itoa(int(k))
	}
}

// Receiver reports whether the first parameter of such a function is a receiver.
func (k Kind) Receiver() bool {
	return k == Method || k == InterfaceMethod || k == GenericMethod || k == LocalMethod
}

// Func holds the names of a func value.
type Func struct {
	Path    string // import path, a dot, and the name
	Runtime string // the same as the runtime spells it: dots in the last element of the import path are %2e there
	Kind    Kind
	Main    bool // declared in package main: the path is the same in every program
}

// Of names a func value. It fails when fn is not a function, is nil, or is unknown to the runtime. Use the path of a
// func value that is neither Plain nor Method in error texts only.
func Of(fn any) (Func, error) {
	v := reflect.ValueOf(fn)
	if v.Kind() != reflect.Func {
		return Func{}, fmt.Errorf("expected a function, found %s", describe(fn))
	}
	if v.IsNil() {
		return Func{}, fmt.Errorf("expected a function, found a nil %s", v.Type())
	}
	rf := runtime.FuncForPC(v.Pointer())
	if rf == nil || rf.Name() == "" {
		return Func{}, fmt.Errorf("expected a function that the runtime has a name for, found a %s without", v.Type())
	}
	return parse(rf.Name(), v.Type()), nil
}

func describe(v any) string {
	if v == nil {
		return "nil"
	}
	return "a value of type " + reflect.TypeOf(v).String()
}

// parse splits a name of the runtime. The type of the function tells methods from function literals, which a name alone
// does not: mail.Send.func1 may be either.
func parse(name string, t reflect.Type) Func {
	f := Func{Path: name, Runtime: name, Kind: LocalMethod}
	switch {
	case name == "reflect.makeFuncStub" || name == "reflect.methodValueCall":
		f.Kind = Made
		return f
	case strings.HasPrefix(name, "go:") || strings.HasPrefix(name, "type:"):
		// Wrappers that the linker names after types without a package: go:struct { mail.Base }.Send,
		// go:builtin.error.Error.
		if t.NumIn() > 0 && t.In(0).Kind() == reflect.Interface {
			f.Kind = InterfaceMethod
		}
		return f
	}
	// The import path ends at the first dot after its last slash: later dots in its last element are escaped, and what
	// follows the path has slashes only in brackets, which the runtime prints as [...].
	dot := strings.IndexByte(name[strings.LastIndexByte(name, '/')+1:], '.')
	if dot < 0 {
		return f
	}
	dot += strings.LastIndexByte(name, '/') + 1
	pkg, rest := unescape(name[:dot]), name[dot+1:]
	f.Path = withoutVendor(pkg) + "." + rest
	f.Main = pkg == "main"
	f.Kind = kindOf(pkg, rest, t)
	return f
}

func kindOf(pkg, rest string, t reflect.Type) Kind {
	rest = strings.ReplaceAll(rest, "[...]", "[]") // leaves only dots between names
	owner, method, dotted := strings.Cut(rest, ".")
	switch {
	case strings.HasSuffix(rest, "-fm"):
		return MethodValue
	case strings.Contains(rest, "-"): // -range1: body of a range-over-func loop
		return Closure
	case strings.HasSuffix(rest, "[]"):
		return Generic
	case strings.Contains(owner, "[]") && isGenericReceiver(owner, method, t):
		return GenericMethod
	case strings.Contains(rest, "·"): // T·1: type declared inside a function, numbered by the compiler
		return LocalMethod
	case !dotted:
		return Plain
	}
	if strings.Contains(method, ".") || t.NumIn() == 0 {
		return Closure
	}
	recv, name := t.In(0), owner
	if pointed, ok := strings.CutPrefix(owner, "(*"); ok {
		if recv.Kind() != reflect.Pointer {
			return Closure
		}
		recv, name = recv.Elem(), strings.TrimSuffix(pointed, ")")
	}
	switch {
	case recv.PkgPath() != pkg || recv.Name() != name:
		return Closure
	case recv.Kind() == reflect.Interface:
		return InterfaceMethod
	default:
		return Method
	}
}

// isGenericReceiver tells (*Box[...]).Put, a method, from Map[...].func1, a function literal.
func isGenericReceiver(owner, method string, t reflect.Type) bool {
	if strings.Contains(method, ".") || t.NumIn() == 0 {
		return false
	}
	recv := t.In(0)
	if recv.Kind() == reflect.Pointer {
		recv = recv.Elem()
	}
	name, _, _ := strings.Cut(recv.Name(), "[")
	owner, _, _ = strings.Cut(strings.TrimPrefix(owner, "(*"), "[")
	return name != "" && name == owner
}

// unescape undoes what the linker does to import paths: %2e for a dot in the last element, and so on for bytes it
// cannot have.
func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// withoutVendor returns the path as import statements spell it, so that a copy of a package in a vendor directory of
// one program is the package that another program imports.
func withoutVendor(pkg string) string {
	if i := strings.LastIndex(pkg, "/vendor/"); i >= 0 {
		return pkg[i+len("/vendor/"):]
	}
	return strings.TrimPrefix(pkg, "vendor/")
}

// Check reports whether a path may stand for a Go function on the wire. A colon would make it a Python function there.
func Check(path string) error {
	switch {
	case path == "":
		return errors.New("expected a path, found an empty one")
	case len(path) > MaxLen:
		return fmt.Errorf("expected a path of at most %d bytes, found one of %d that begins with %.40q", MaxLen,
			len(path), path)
	case strings.Contains(path, ":"):
		return fmt.Errorf("expected a path without a colon, which marks Python functions, found %q", path)
	case !utf8.ValidString(path):
		return fmt.Errorf("expected a path in UTF-8, found %q", path)
	case strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("expected a path of printable characters, found %q", path)
	}
	return nil
}
