package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
)

// callForm is a form for the call of a function: what it asks for, what was typed, and what is wrong with that.
type callForm struct {
	Path    string
	Fn      *inspect.Function // nil: nobody has published it
	Args    []*callField      // one for each parameter; without Fn one for all arguments
	Kwargs  *callField        // of Python's functions
	Options []*callField
	More    bool // some options are given
}

// callField is a field of a form.
type callField struct {
	Name, Label, Type, Hint, Example string
	Optional, Long                   bool
	Value, Error                     string
}

// newCallForm returns the form of a function with what was typed. Fields of arguments are "arg1", "arg2" and so on, or
// "args" if nobody has published the function; those of options have the names of call.Options behind "o-".
func newCallForm(path string, fn *inspect.Function, args url.Values) *callForm {
	f := &callForm{Path: path, Fn: fn}
	if fn == nil {
		f.Args = []*callField{{
			Name: "args", Label: "Arguments", Hint: "A JSON array of them", Example: `[42, "text"]`, Optional: true,
			Long: true,
		}}
	} else {
		for i := range fn.Parameters {
			f.Args = append(f.Args, parameterField(fn, i))
		}
	}
	if f.python() {
		f.Kwargs = &callField{
			Name: "kwargs", Label: "Keyword arguments", Hint: "A JSON object", Example: `{"name": "value"}`,
			Optional: true,
		}
	}
	for i := range call.Options {
		o := &call.Options[i]
		if o.Label == "" {
			continue
		}
		field := &callField{
			Name: optionField + o.Name, Label: o.Label, Hint: strings.ToUpper(o.Help[:1]) + o.Help[1:],
			Example: o.Example, Long: o.Many, Optional: true,
		}
		switch {
		case o.Many:
			field.Hint += ", one a line"
		case o.Kind == "time":
			field.Hint += ", in UTC if it names no zone"
		}
		f.Options = append(f.Options, field)
	}
	f.fill(args)
	f.More = slices.ContainsFunc(f.Options, func(o *callField) bool { return o.Value != "" })
	return f
}

// optionField is what the names of fields of options begin with.
const optionField = "o-"

// python reports whether the function is one of Python: module:function.
func (f *callForm) python() bool { return strings.Contains(f.Path, ":") }

// fill fills in what was typed.
func (f *callForm) fill(args url.Values) {
	for _, field := range f.fields() {
		field.Value = strings.ReplaceAll(args.Get(field.Name), "\r\n", "\n")
	}
}

// fields returns all fields.
func (f *callForm) fields() []*callField {
	all := slices.Concat(f.Args, f.Options)
	if f.Kwargs != nil {
		all = append(all, f.Kwargs)
	}
	return all
}

// parameterField returns the field of a parameter.
func parameterField(fn *inspect.Function, i int) *callField {
	p := &fn.Parameters[i]
	field := &callField{
		Name: fmt.Sprint("arg", i+1), Label: p.Name, Type: fn.TypeOf(i), Example: exampleOf(p),
		Optional: mayLack(fn, i),
	}
	if field.Label == "" {
		field.Label = fmt.Sprint("Argument ", i+1)
	}
	switch {
	case fn.Variadic && i == len(fn.Parameters)-1:
		field.Hint = "A JSON array, of as many as you like"
	case isText(p.Shape):
		field.Hint = "Text, with or without quotes"
	case p.Shape != nil && p.Shape.Kind == "bytes":
		field.Hint = "Bytes in base64, with quotes"
	case p.Shape != nil && (p.Shape.Kind == "struct" || p.Shape.Kind == "map" || p.Shape.Kind == "list"):
		field.Hint, field.Long = "JSON: "+shapeText(p.Shape), true
	}
	return field
}

// errTyped means that fields of a form are wrong: their Error has what.
var errTyped = errors.New("some fields are not right")

// read returns the call and the options that were typed, or notes what is wrong in the fields and returns errTyped.
func (f *callForm) read() (task *delayed.Task, options []delayed.Option, err error) {
	for _, field := range f.Options {
		name := strings.TrimPrefix(field.Name, optionField)
		var texts []string
		for line := range strings.Lines(field.Value) {
			if line = strings.TrimSpace(line); line != "" {
				key, value, ok := strings.Cut(line, "=")
				if ok && name == "header" {
					line = strings.TrimSpace(key) + "=" + strings.TrimSpace(value)
				}
				texts = append(texts, line)
			}
		}
		some, err := call.ReadOptions(map[string][]string{name: texts}, time.UTC)
		if wrong := new(call.OptionError); errors.As(err, &wrong) {
			field.Error = wrong.Err.Error()
		}
		options = append(options, some...)
	}
	if f.Fn == nil {
		task = f.unchecked()
	} else {
		task = f.checked()
	}
	for _, field := range f.fields() {
		if field.Error != "" {
			return nil, nil, errTyped
		}
	}
	return task, options, nil
}

// unchecked returns the call of a function that nobody has published.
func (f *callForm) unchecked() *delayed.Task {
	texts, err := call.Split(strings.TrimSpace(f.Args[0].Value))
	var args []any
	if err == nil {
		args, err = call.Arguments(texts, nil)
	}
	if err != nil {
		f.Args[0].Error = err.Error()
		return nil
	}
	if f.python() {
		return delayed.NewPyTask(f.Path, args, f.keywords())
	}
	return delayed.NewGoTask(f.Path, args...)
}

// keywords returns the keyword arguments.
func (f *callForm) keywords() map[string]any {
	text := strings.TrimSpace(f.Kwargs.Value)
	if text == "" {
		return nil
	}
	values, err := call.Arguments([]string{text}, nil)
	if err != nil {
		f.Kwargs.Error = withoutNumber(err)
		return nil
	}
	named, ok := values[0].(map[string]any)
	if !ok {
		f.Kwargs.Error = "expected a JSON object, such as " + f.Kwargs.Example
	}
	return named
}

// checked returns the call of a published function. Arguments behind one that is left out must be left out too; those
// of Python's functions go by their names then.
func (f *callForm) checked() *delayed.Task {
	var args []any
	named := map[string]any{}
	missing := -1
	if f.python() {
		if named = f.keywords(); named == nil {
			named = map[string]any{}
		}
	}
	last := len(f.Args) - 1
	for i, field := range f.Args {
		p := &f.Fn.Parameters[i]
		variadic := f.Fn.Variadic && i == last
		text := strings.TrimSpace(field.Value)
		_, byName := named[p.Name]
		switch {
		case text == "" && variadic:
			if missing < 0 && !f.python() {
				args = append(args, []any{})
			}
			continue
		case text == "" && (field.Optional || byName && p.Name != ""):
			missing = i
			continue
		case text == "":
			field.Error = "expected a value of type " + p.Type + ", such as " + field.Example
			continue
		case missing >= 0 && (!f.python() || p.Name == "" || variadic):
			field.Error = "expected none, because argument " + strconv.Itoa(missing+1) + " is left out"
			continue
		}
		value, err := argument(text, p)
		switch {
		case err != nil:
			field.Error = withoutNumber(err)
		case missing >= 0:
			named[p.Name] = value
		case variadic && f.python():
			list, _ := value.([]any)
			args = append(args, list...)
		default:
			args = append(args, value)
		}
	}
	if f.python() {
		return delayed.NewPyTask(f.Path, args, named)
	}
	return delayed.NewGoTask(f.Path, args...)
}

// argument reads one argument. Texts need no quotes.
func argument(text string, p *inspect.Parameter) (any, error) {
	isJSON := text[0] == '"' && json.Valid([]byte(text)) || text == "null"
	if isText(p.Shape) && (!isJSON || text == "null" && p.Shape.Kind == "string") {
		quoted, err := json.Marshal(text)
		if err != nil {
			return nil, err
		}
		text = string(quoted)
	}
	values, err := call.Arguments([]string{text}, &inspect.Function{Parameters: []inspect.Parameter{*p}})
	if err != nil {
		return nil, err
	}
	return values[0], nil
}

// withoutNumber returns the text of an error of package call without which argument it is about.
func withoutNumber(err error) string {
	if _, text, ok := strings.Cut(err.Error(), ": "); ok {
		return text
	}
	return err.Error()
}
