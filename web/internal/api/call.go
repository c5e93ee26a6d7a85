package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/web/internal/site"
)

// apiCall is one request of the API.
type apiCall struct {
	*site.Request

	http     *http.Request
	location string // of what was made
}

// in returns a part of the path, such as the name of a queue.
func (c *apiCall) in(name string) string { return c.http.PathValue(name) }

// noBody returns an error if there is a body, because it would be ignored.
func (c *apiCall) noBody() error {
	text, err := io.ReadAll(c.http.Body)
	switch text = bytes.TrimSpace(text); {
	case err != nil:
		return err
	case len(text) > 0 && string(text) != "{}":
		return site.Bad("expected no body, because the address says it all, found " +
			strconv.Quote(call.Clip(string(text),
				60)))
	}
	return nil
}

// decode reads the body, a JSON object with the fields of what v points to and no others.
func (c *apiCall) decode(v any) error {
	kind, _, _ := strings.Cut(c.http.Header.Get("Content-Type"), ";")
	if kind = strings.TrimSpace(kind); !strings.EqualFold(kind, "application/json") {
		return site.Fail(
			http.StatusUnsupportedMediaType,
			"expected the header Content-Type to be application/json, found "+strconv.Quote(call.Clip(kind, 60)))
	}
	d := json.NewDecoder(c.http.Body)
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err == nil {
			err = errors.New("more than one JSON value")
		}
	}
	return wrongBody(err, v)
}

// wrongBody says what is wrong with a body.
func wrongBody(err error, v any) error {
	var large *http.MaxBytesError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &large):
		return err
	case errors.As(err, &kind) && kind.Field != "":
		return site.Bad(fmt.Sprintf("the body: field %s: expected %s, found %s", call.Clip(kind.Field, 60),
			wordFor(kind.Type),
			call.Clip(kind.Value, 60)))
	case errors.Is(err, io.EOF):
		return site.Bad("expected a JSON object with the fields " + fieldsOf(v) + ", found an empty body")
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	return site.Bad("the body: " + call.Clip(text, 200) + ": expected a JSON object with the fields " + fieldsOf(v))
}

// up leads from the address of the request to that of the API.
func (c *apiCall) up() string { return strings.Repeat("../", strings.Count(c.Path, "/")) }

// wordFor names a type of a field as JSON does.
func wordFor(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return wordFor(t.Elem())
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	default:
		return "a whole number"
	}
}

// fieldsOf lists the fields of a body.
func fieldsOf(v any) string {
	t := reflect.TypeOf(v).Elem()
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if tag := f.Tag.Get("json"); tag != "" {
			name, _, _ := strings.Cut(tag, ",")
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
