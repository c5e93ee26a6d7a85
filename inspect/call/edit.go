package call

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
)

// Write returns the positional arguments of a task as a JSON array, of which Edited makes the same call again. fn is
// the published function; it is not used for Python tasks. It returns an error if JSON cannot hold an argument.
func Write(t *inspect.Task, fn *inspect.Function) (string, error) {
	args, kinds := t.Args, []kind{}
	if !t.Python {
		for _, p := range fn.Parameters {
			kinds = append(kinds, kind{p.Shape, p.Type})
		}
		if last := len(kinds) - 1; fn.Variadic && len(args) == len(kinds) {
			rest, _ := args[last].([]any) // on the wire, variadic arguments are one
			args = append(args[:last:last], rest...)
			element := kinds[last].elem()
			kinds = kinds[:last]
			for range rest {
				kinds = append(kinds, element)
			}
		}
	}
	values := make([]any, len(args))
	for i := range args {
		want := kind{}
		if i < len(kinds) {
			want = kinds[i]
		}
		v, err := written(args[i], want)
		if err != nil {
			return "", fmt.Errorf("argument %d: %w", i+1, err)
		}
		values[i] = v
	}
	text, err := JSON(values)
	return string(text), err
}

// errOpaque is the error for a value for which JSON has no form that is read back as that value.
var errOpaque = errors.New("JSON cannot hold its bytes, times or numbers without a type: change it with a program")

// written returns a decoded value of a kind as JSON writes it.
func written(v any, want kind) (any, error) {
	for want.shape != nil && want.shape.Kind == "optional" {
		want = want.elem()
	}
	is := ""
	if want.shape != nil {
		is = want.shape.Kind
	}
	switch v := v.(type) {
	case []byte:
		if is != "bytes" {
			return nil, errOpaque
		}
	case time.Time:
		if is != "time" {
			return nil, errOpaque
		}
	case float32:
		return written(float64(v), want)
	case float64:
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, errOpaque
		}
		if !strings.ContainsAny(text, ".e") {
			text += ".0" // else it would be read back as a whole number
		}
		return json.Number(text), nil
	case []any:
		list := make([]any, len(v))
		for i := range v {
			e, err := written(v[i], want.elem())
			if err != nil {
				return nil, err
			}
			list[i] = e
		}
		return list, nil
	case map[string]any:
		m := make(map[string]any, len(v))
		for k := range v {
			e, err := written(v[k], want.value(k))
			if err != nil {
				return nil, err
			}
			m[k] = e
		}
		return m, nil
	case map[any]any:
		return nil, errOpaque
	}
	return Plain(v), nil
}

// Edited returns the call of a task with other positional arguments, a JSON array. Those of a Go function are checked
// against the published one. Keyword arguments of a Python function stay.
func Edited(t *inspect.Task, fn *inspect.Function, text string) (*delayed.Task, error) {
	texts, err := Split(text)
	if err != nil {
		return nil, err
	}
	if !t.Python {
		args, err := Arguments(texts, fn)
		return delayed.NewGoTask(t.Function, args...), err
	}
	args, err := Arguments(texts, nil)
	return delayed.NewPyTask(t.Function, args, t.Kwargs), err
}

// Published returns the function of a Go task among those that workers of its queue have published.
func Published(functions []inspect.Function, t *inspect.Task) (*inspect.Function, error) {
	matching := Match(functions, t.Function)
	if len(matching) == 0 {
		return nil, errors.New("no worker of its queue has published " + inspect.ShortName(t.Function))
	}
	for _, f := range matching[1:] {
		if f.Signature() != matching[0].Signature() {
			return nil, fmt.Errorf("workers of its queue know two versions, %s and %s, as during a deploy: wait until "+
				"it is over", matching[0].Signature(), f.Signature())
		}
	}
	return matching[0], nil
}
