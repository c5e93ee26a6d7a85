package document

import "github.com/godelayed/delayed/inspect"

// Functions is the functions that workers have published.
type Functions struct {
	Functions []Function `json:"functions"`
}

// Function is a function that workers of a queue run.
type Function struct {
	Queue      string      `json:"queue"`
	Path       string      `json:"path"`
	Signature  string      `json:"signature"`
	Aliases    []string    `json:"aliases"`
	Parameters []Parameter `json:"parameters"`
	Variadic   bool        `json:"variadic"`
	Optional   int         `json:"optional"`
	Result     string      `json:"result"`
	Workers    []string    `json:"workers"`
}

// Parameter is a parameter of a function.
type Parameter struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// FunctionsOf describes functions.
func FunctionsOf(functions []inspect.Function) Functions {
	return Functions{each(functions, func(f *inspect.Function) Function {
		return Function{
			Queue: f.Queue, Path: f.Path, Signature: f.Signature(), Aliases: append([]string{}, f.Aliases...),
			Parameters: each(f.Parameters, func(p *inspect.Parameter) Parameter { return Parameter{p.Name, p.Type} }),
			Variadic:   f.Variadic, Optional: f.Optional, Result: f.Result, Workers: f.Workers,
		}
	})}
}
