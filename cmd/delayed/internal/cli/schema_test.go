package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/internal/jsonschema"
)

// documents are what commands print with --json, by the names of their schemas.
var documents = map[string]any{
	"queues": document.Queues{}, "queue": document.OneQueue{}, "history": document.History{},
	"tasks": document.Lists{}, "task": document.Found{}, "acted": document.Acted{}, "done": document.Did{},
	"workers": document.Workers{}, "functions": document.Functions{}, "cron": document.Entries{},
	"ticks": document.Ticks{}, "groups": document.Groups{}, "audit": document.Audit{}, "stats": document.Stats{},
	"enqueued": document.Enqueued{}, "tail": document.Event{}, "metrics": document.Metrics{},
	"scale": document.Scale{}, "doctor": document.Diagnosis{}, "monitor": monitorView{}, "version": versionView{},
	"export": lineJSON{}, "bench": benchView{},
}

// docsOfDocuments returns the comments of all types that documents have.
func docsOfDocuments(t *testing.T) jsonschema.Docs {
	t.Helper()
	docs := jsonschema.Docs{}
	for _, dir := range []string{".", "../../../../inspect", "../../../../inspect/document"} {
		if err := docs.Read(dir); err != nil {
			t.Fatal(err)
		}
	}
	return docs
}

// TestSchemas holds the schemas against the types that commands print. With -update it writes them.
func TestSchemas(t *testing.T) {
	t.Parallel()
	docs := docsOfDocuments(t)
	dir := "../../schema"
	write := flag.Lookup("update").Value.String() == "true"
	for name, v := range documents {
		root := reflect.TypeOf(v)
		s := docs.Object(root, nil)
		s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
		s["title"] = "delayed " + name
		s["description"] = docs.Describe(root)
		text, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name+".json")
		if write {
			if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if found, err := os.ReadFile(file); err != nil || !bytes.Equal(bytes.TrimSpace(found), text) {
			t.Errorf("%s is not what the commands print (%v): run make generate", file, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != len(documents) {
		t.Errorf("%d schemas of %d documents (%v)", len(files), len(documents), err)
	}
}
