package call

import (
	"errors"
	"fmt"
	"strings"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
)

// Request is a call as people describe it.
type Request struct {
	// Queue may be "" if the workers of one queue alone know the function.
	Queue string
	// Function is the path of a function that workers have published, or the end of it, such as mail.Welcome or
	// module:function of Python. A Python function that nobody has published is taken as it is, and needs a queue.
	Function string
	Args     []string // each a JSON value
	Kwargs   string   // of a Python function, a JSON object; "" for none
	// Unchecked takes the path and the arguments as they are given, whatever workers have published.
	Unchecked bool
}

// ErrAmbiguous is the error of Request.Task if a name means several functions.
var ErrAmbiguous = errors.New("ambiguous function")

// marked is an error with a text of its own that callers take for another one.
type marked struct {
	error
	is error
}

func (m marked) Is(target error) bool { return target == m.is }

// ambiguous returns an ErrAmbiguous with a text.
func ambiguous(format string, args ...any) error {
	return marked{fmt.Errorf(format, args...), ErrAmbiguous}
}

// Task returns the call and its queue. It needs the functions that workers of the queue have published, of all queues
// without one; none if the call is unchecked. The error of a function that nobody has published is an
// inspect.ErrNotFound.
func (r *Request) Task(functions []inspect.Function) (queue string, task *delayed.Task, err error) {
	python := strings.Contains(r.Function, ":")
	switch {
	case r.Function == "":
		return "", nil, errors.New("function: expected the path of a function, or the end of it, such as mail.Welcome")
	case r.Unchecked && r.Queue == "":
		return "", nil, errors.New("queue: expected the name of one, because an unchecked call is not looked for")
	case !python && r.Kwargs != "":
		return "", nil, errors.New("kwargs: expected them only of Python functions, module:function")
	case r.Unchecked && python:
		task, err = Python(r.Function, r.Args, r.Kwargs)
		return r.Queue, task, err
	case r.Unchecked:
		args, err := Arguments(r.Args, nil)
		return r.Queue, delayed.NewGoTask(r.Function, args...), err
	case python:
		return r.python(functions)
	}
	fn, err := one(functions, r.Function)
	if err != nil {
		return "", nil, err
	}
	args, err := Arguments(r.Args, fn)
	return fn.Queue, delayed.NewGoTask(fn.Path, args...), err
}

// Match returns the functions that a name means; see inspect.Function.IsNamed.
func Match(functions []inspect.Function, name string) (matching []*inspect.Function) {
	for i := range functions {
		if f := &functions[i]; f.IsNamed(name) {
			matching = append(matching, f)
		}
	}
	return matching
}

// one returns the one function that a name means.
func one(functions []inspect.Function, name string) (*inspect.Function, error) {
	matching := Match(functions, name)
	if len(matching) == 0 {
		return nil, marked{errors.New("function: no living worker has published " + quote(name)), inspect.ErrNotFound}
	}
	for _, f := range matching[1:] {
		switch first := matching[0]; {
		case f.Path != first.Path:
			return nil, ambiguous("function: %s means several, %s and %s: give more of the path", quote(name),
				first.Path, f.Path)
		case f.Queue != first.Queue:
			return nil, ambiguous("queue: expected one, because workers of %s and %s know %s", first.Queue, f.Queue,
				quote(name))
		case f.Signature() != first.Signature():
			return nil, ambiguous("function: workers know two versions, %s and %s, as during a deploy: wait until it "+
				"is over, or leave the call unchecked", first.Signature(), f.Signature())
		}
	}
	return matching[0], nil
}

// python returns a call of a Python function, checked against those that are published. One that nobody has published
// is taken as it is, because legacy workers publish none.
func (r *Request) python(functions []inspect.Function) (queue string, task *delayed.Task, err error) {
	matching := Match(functions, r.Function)
	path := r.Function
	if len(matching) > 0 {
		path = matching[0].Path
	} else if r.Queue == "" {
		return "", nil, fmt.Errorf("no living worker has published a Python function %s: expected its queue too",
			quote(path))
	}
	if task, err = Python(path, r.Args, r.Kwargs); err != nil {
		return "", nil, err
	}
	for _, f := range matching {
		switch {
		case f.Path != path:
			return "", nil, ambiguous("%s means several, %s and %s: give more of the path", quote(r.Function), path,
				f.Path)
		case r.Queue == "" && f.Queue != matching[0].Queue:
			return "", nil, ambiguous("workers of %s and %s know %s: expected its queue too", matching[0].Queue,
				f.Queue, quote(r.Function))
		}
		if err = f.Fits(task); err == nil {
			return f.Queue, task, nil
		}
	}
	return r.Queue, task, err
}
