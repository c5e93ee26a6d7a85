package delayed_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// sourceNames are the names that docs/ARCHITECTURE.md may mention.
type sourceNames struct {
	paths map[string]bool // of files and folders, and their base names
	words map[string]bool // identifiers of Go and words of Python, without those of tests; names of scripts and folders
}

// namesOfSources reads the sources of all modules.
func namesOfSources(t *testing.T) sourceNames {
	t.Helper()
	n := sourceNames{paths: map[string]bool{}, words: map[string]bool{}}
	tree := os.DirFS(".")
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		base := path.Base(name)
		if strings.HasPrefix(base, ".") && entry.IsDir() {
			return fs.SkipDir
		}
		n.paths[name], n.paths[base] = true, true
		if entry.IsDir() {
			n.words[base] = true
			return nil
		}
		switch ext := path.Ext(name); {
		case ext == ".lua":
			n.words[strings.TrimSuffix(base, ext)] = true
		case ext == ".py", ext == ".go" && !strings.HasSuffix(name, "_test.go"):
			text, err := fs.ReadFile(tree, name)
			if err != nil {
				return err
			}
			n.addWords(ext, text)
			if ext == ".py" {
				n.words[strings.TrimSuffix(base, ext)] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *sourceNames) addWords(ext string, text []byte) {
	if ext == ".py" {
		for _, word := range regexp.MustCompile(`\w+`).FindAll(text, -1) {
			n.words[string(word)] = true
		}
		return
	}
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(text)), text, nil, 0)
	for {
		_, tok, literal := s.Scan()
		if tok == token.EOF {
			return
		}
		if tok == token.IDENT {
			n.words[literal] = true
		}
	}
}

// missing returns what is wrong with a name in the text; "" if nothing is, or if it does not name a file or code.
func (n *sourceNames) missing(name string) string {
	switch {
	case strings.HasPrefix(name, "go "), strings.HasPrefix(name, "make "), strings.HasPrefix(name, "N_"), name == ".":
		return ""
	case regexp.MustCompile(`^[\w./-]+\.(go|lua|py|md|yml)$`).MatchString(name), strings.Contains(name, "/"):
		if !n.paths[strings.TrimSuffix(strings.TrimPrefix(name, "../"), "/")] {
			return "there is no such file or folder"
		}
	case regexp.MustCompile(`^\w+(\.\w+)*$`).MatchString(name):
		for part := range strings.SplitSeq(name, ".") {
			if !n.words[part] && strings.ToUpper(part) != part {
				return "nothing in the code is called " + part
			}
		}
	}
	return ""
}

// TestArchitecturePage compares the names of files and identifiers in docs/ARCHITECTURE.md with the sources.
func TestArchitecturePage(t *testing.T) {
	text, err := os.ReadFile("docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	names := namesOfSources(t)
	span := regexp.MustCompile("`([^`\n]+)`")
	prose := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(page, "")
	spans := span.FindAllStringSubmatch(prose, -1)
	for _, m := range spans {
		if wrong := names.missing(m[1]); wrong != "" {
			t.Errorf("docs/ARCHITECTURE.md names `%s`: %s", m[1], wrong)
		}
	}
	if len(spans) < 200 {
		t.Errorf("found only %d names: is the page still written with them?", len(spans))
	}
	for _, m := range regexp.MustCompile(`\]\(([\w./-]+)(?:#[\w-]+)?\)`).FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat(path.Join("docs", m[1])); err != nil {
			t.Errorf("docs/ARCHITECTURE.md links to %s: %v", m[1], err)
		}
	}
	section := func(title string) string {
		_, rest, ok := strings.Cut(page, "\n"+title+"\n")
		if !ok {
			t.Fatalf("docs/ARCHITECTURE.md has no section %q", title)
		}
		rest, _, _ = strings.Cut(rest, "\n#")
		return rest
	}
	engineFile := regexp.MustCompile("`(\\w+\\.go)`")
	for _, m := range engineFile.FindAllStringSubmatch(section("### Files of the engine"), -1) {
		if !names.paths["internal/engine/"+m[1]] {
			t.Errorf("internal/engine has no %s", m[1])
		}
	}
	// A reader who looks for something should not have to open more files than in comparable projects.
	const most = 18
	open := map[string]bool{}
	anyFile := regexp.MustCompile("[`[]([\\w/]+\\.(?:go|lua|md))[`\\]]")
	for _, m := range anyFile.FindAllStringSubmatch(section("## Where is …?"), -1) {
		open[m[1]] = true
	}
	if len(open) == 0 || len(open) > most {
		t.Errorf("the questions need %d files: expected 1 to %d", len(open), most)
	}
	told := regexp.MustCompile(`(?m)^\| files that answer .*\| (\d+) \|$`).FindStringSubmatch(page)
	if told == nil || told[1] != strconv.Itoa(len(open)) {
		t.Errorf("the questions need %d files, the table says %q", len(open), told)
	}
}
