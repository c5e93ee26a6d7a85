package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/internal/jsonschema"
	"github.com/godelayed/delayed/web/internal/auth"
)

var update = flag.Bool("update", false, "write openapi.json")

type object = map[string]any

// TestCallOptions looks for each option of a call among the fields of the API.
func TestCallOptions(t *testing.T) {
	t.Parallel()
	fields := map[string]bool{"header": true} // headers
	for _, f := range reflect.VisibleFields(reflect.TypeFor[callOptions]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[strings.ReplaceAll(name, "_", "-")] = true
	}
	for _, o := range call.Options {
		if !fields[o.Name] {
			t.Errorf("callOptions has no field for the option %s", o.Name)
		}
	}
}

// TestOpenAPI compares openapi.json with the endpoints and their types. With -update it writes it.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	docs := jsonschema.Docs{}
	for _, dir := range []string{".", "../../../inspect", "../../../inspect/document"} {
		if err := docs.Read(dir); err != nil {
			t.Fatal(err)
		}
	}
	d := &description{docs: docs, schemas: object{}}
	text, err := json.MarshalIndent(d.all(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("openapi.json", append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(bytes.TrimSpace(openAPI), text) {
		t.Error("web/internal/api/openapi.json does not describe the endpoints: run make generate")
	}
}

// description makes the OpenAPI description of the endpoints.
type description struct {
	docs    jsonschema.Docs
	schemas object
}

func (d *description) all() object {
	paths := object{}
	for name, methods := range methodsOf(Endpoints()) {
		item := object{}
		for method, e := range methods {
			item[strings.ToLower(method)] = d.operation(e)
		}
		if params := pathParams(name); params != nil {
			item["parameters"] = params
		}
		paths["/"+name] = item
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "delayed", "version": "1",
			"description": "What the queues of a dashboard hold, what their workers do, and actions on them. Errors " +
				"are " +
				"problems as RFC 9457 has them.",
			"license": object{"name": "See the repository", "url": "https://github.com/godelayed/delayed"},
		},
		"servers":    []any{object{"url": ".", "description": "where this description is"}},
		"security":   []any{object{"token": []any{}}, object{"browser": []any{}}},
		"paths":      paths,
		"components": d.components(),
	}
}

func (d *description) components() object {
	problem := reflect.TypeFor[problemAnswer]()
	d.ref(problem)
	d.ref(reflect.TypeFor[document.Event]())
	return object{
		"schemas": d.schemas,
		"securitySchemes": object{
			"token": object{"type": "http", "scheme": "bearer", "description": "the secret of one of Config.Tokens"},
			"browser": object{
				"type": "apiKey", "in": "header", "name": auth.CSRFHeader,
				"description": "the value of the cookie " + auth.CSRFCookie +
					", for users whom Config.Authorize knows, or who " +
					"have signed in; GET needs none",
			},
		},
		"responses": object{"Problem": object{
			"description": "The request is wrong, or cannot be answered.",
			"content":     object{"application/problem+json": object{"schema": d.docs.Of(problem, d.ref)}},
		}},
	}
}

var placeholder = regexp.MustCompile(`\{(\w+)\}`)

func pathParams(name string) (params []any) {
	for _, m := range placeholder.FindAllStringSubmatch(name, -1) {
		params = append(params, object{"name": m[1], "in": "path", "required": true, "schema": object{
			"type": "string",
		}})
	}
	return params
}

func (d *description) operation(e *Endpoint) object {
	op := object{"operationId": e.name, "summary": e.text, "description": "Needs the role " + e.Role.String() + "."}
	var params []any
	for i := range e.params {
		params = append(params, queryParam(&e.params[i]))
	}
	if params != nil {
		op["parameters"] = params
	}
	if e.body != nil {
		op["requestBody"] = object{
			"required": true, "content": object{"application/json": object{"schema": d.docs.Of(e.body, d.ref)}},
		}
	}
	success := object{"description": e.text}
	switch {
	case e.stream != nil:
		success["content"] = object{"text/event-stream": object{"schema": object{
			"type": "string", "description": "the data of each message is an Event, that of kind problem a Problem",
		}}}
	case e.answer.PkgPath() == "encoding/json":
		success["content"] = object{"application/json": object{"schema": object{"type": "object"}}}
	default:
		success["content"] = object{"application/json": object{"schema": d.docs.Of(e.answer, d.ref)}}
	}
	op["responses"] = object{
		strconv.Itoa(e.success()): success, "default": object{"$ref": "#/components/responses/Problem"},
	}
	return op
}

func queryParam(p *param) object {
	schema := object{"type": "string"}
	switch p.Kind {
	case "number":
		schema = object{"type": "integer", "minimum": p.Least, "maximum": p.Most}
	case "flag":
		schema = object{"type": "boolean"}
	}
	if p.Names != nil {
		schema["enum"] = p.Names
	}
	if n, err := strconv.Atoi(p.Usual); err == nil {
		schema["default"] = n
	} else if p.Usual != "" {
		schema["default"] = p.Usual
	}
	if p.Many {
		schema = object{"type": "array", "items": schema, "maxItems": maxRepeated}
	}
	return object{"name": p.Name, "in": "query", "description": p.Text, "schema": schema}
}

// ref describes a struct among the components, and returns a reference to it.
func (d *description) ref(t reflect.Type) string {
	name, _ := strings.CutSuffix(strings.ToUpper(t.Name()[:1])+t.Name()[1:], "Answer")
	own := path.Base(t.PkgPath()) + "." + t.Name()
	if d.schemas[name] == nil {
		d.schemas[name] = object{} // for types that contain themselves
		s := d.docs.Object(t, d.ref)
		s["description"] = d.docs.Describe(t)
		s["x-go-type"] = own
		d.schemas[name] = s
	} else if s, ok := d.schemas[name].(object); ok && s["x-go-type"] != nil && s["x-go-type"] != own {
		panic("two types of the API are called " + name)
	}
	return "#/components/schemas/" + name
}

// TestParameters finds parameters that endpoints declare wrongly.
func TestParameters(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, e := range Endpoints() {
		if names[e.name] || e.text == "" || e.Role < auth.Viewer {
			t.Errorf("%s %s: expected a name of its own, a text and a role", e.Method, e.Path)
		}
		names[e.name] = true
		if (e.Method == http.MethodGet) != (e.Role == auth.Viewer) {
			t.Errorf("%s %s needs the role %v: viewers change nothing, and all others may look", e.Method, e.Path,
				e.Role)
		}
		seen := map[string]bool{}
		for _, p := range e.params {
			if seen[p.Name] || p.Text == "" || !slices.Contains([]string{"text", "number", "duration", "flag"},
				p.Kind) ||
				p.Kind == "number" && p.Most <= p.Least {
				t.Errorf("%s %s: parameter %+v is declared wrongly", e.Method, e.Path, p)
			}
			seen[p.Name] = true
		}
	}
}

// TestJobFilter compares the filter of jobs with that of lists.
func TestJobFilter(t *testing.T) {
	t.Parallel()
	found := strings.Split(fieldsOf(&jobFilter{}), ", ")
	var want []string
	for i := range call.Conditions {
		want = append(want, call.Conditions[i].Name)
	}
	slices.Sort(found)
	slices.Sort(want)
	if !slices.Equal(found, want) {
		t.Errorf("the filter of jobs has %v, that of lists %v", found, want)
	}
	values, err := textsOf(&jobFilter{Function: "f", Header: []string{"a", "b=1"}, Max: 1_000_000})
	if err != nil || values.Encode() != "function=f&header=a&header=b%3D1&max=1000000" {
		t.Errorf("found %v, %v", values.Encode(), err)
	}
}
