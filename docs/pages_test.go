package docs_test

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/schedule"
	"github.com/godelayed/delayed/internal/wire"
)

// TestMain runs the tests in the root of the repository: what they compare names files by their paths there.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// TestNumbersOfThePages compares the numbers in pages and documentation with the constants in the code.
func TestNumbersOfThePages(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		page, says string
		found      any
		want       any
	}{
		{
			"docs/SECURITY.md", "1 MiB, 65,536 elements, 32 levels, paths of 512 bytes", wire.Default,
			wire.Limits{Bytes: 1 << 20, Elems: 65_536, Depth: 32, Path: 512},
		},
		{"docs/SECURITY.md", "more than 1 MiB and 4 KiB", wire.WorkerLimits.Bytes, 1<<20 + 4<<10},
		{"docs/SECURITY.md", "ids and names to 1 KiB", loop.MaxLogField, 1 << 10},
		{"docs/SECURITY.md", "one log line a second", loop.LineInterval, time.Second},
		{"docs/RELIABILITY.md", "died **alone** three times", lifecycle.MaxDeaths, 3},
		{"docs/RELIABILITY.md", "Deaths lapse 72 hours", lifecycle.DeathLife, 3 * day},
		{"docs/DEPLOYING.md", "up to seven days", lifecycle.ParkedLife, 7 * day},
		{"docs/PERIODIC.md", "the lock expires after 24 h", schedule.OverlapLife, day},
		{"docs/PERIODIC.md", "At least 1 s", schedule.ShortestEvery, time.Second},
		{"worker_config.go", "90 days", lifecycle.ArchivedLife, 90 * day},
		{"worker_config.go", "10,000", lifecycle.MaxArchived, 10_000},
		{"options.go", "at most 256 bytes", wire.MaxTaskID, 256},
		{"options.go", "7 days", redisstore.LockLife, 7 * day},
		{"options.go", "at most 64 headers", wire.MaxHeaders, 64},
		{"options.go", "8,192 bytes", wire.MaxHeaderBytes, 8_192},
		{"options.go", "64 of them", wire.MaxRetryDelays, 64},
		{"group.go", "Defaults to a minute", group.DefaultGrace, time.Minute},
		{"group.go", "Defaults to 1,000", group.DefaultGroupSize, 1_000},
		{"group.go", "never more than 5,000", group.MaxGroupSize, 5_000},
		{"queue.go", "1,000 or 1 MiB at a time", redisstore.MaxBatchTasks, 1_000},
		{"queue.go", "1,000 or 1 MiB at a time", redisstore.MaxCallBytes, 1 << 20},
		{"queue.go", "at most 500 tasks with In, At or Group", redisstore.MaxFiled, 500},
		{"queue.go", "at most 100 tasks", redisstore.MaxEnlisted, 100},
	} {
		page, err := os.ReadFile(c.page)
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(strings.Fields(strings.ReplaceAll(string(page), "//", "")),
			" "); !strings.Contains(text,
			c.says) {
			t.Errorf("%s does not say %q any more", c.page, c.says)
		}
		if c.found != c.want {
			t.Errorf("%s says %q, found %v", c.page, c.says, c.found)
		}
	}
}

// TestHooksPage compares docs/HOOKS.md with the kinds of events and the reasons to stop.
func TestHooksPage(t *testing.T) {
	page, err := os.ReadFile("docs/HOOKS.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("event/kind.go")
	if err != nil {
		t.Fatal(err)
	}
	first := func(text []byte, pattern string) (found []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
			found = append(found, string(m[1]))
		}
		return found
	}
	constants, rows := first(source, `(?m)^\t((?:Task|Worker|Heartbeat|Queue)\w+) .*//`),
		first(page, "(?m)^- `event\\.(\\w+)`: ")
	if len(constants) == 0 || !slices.Equal(constants, rows) {
		t.Errorf("kinds of events in event/kind.go and docs/HOOKS.md differ: %d and %d\n%q\n%q", len(constants),
			len(rows),
			constants, rows)
	}
	for i, constant := range constants {
		name := event.Kind(i + 1).String()
		if strings.ReplaceAll(name, " ", "") != strings.ToLower(constant) {
			t.Errorf("%s is called %q", constant, name)
		}
	}
	for _, none := range []int{0, len(constants) + 1} {
		if name := event.Kind(none).String(); name != "unknown event" {
			t.Errorf("kind %d, which is none, is called %q", none, name)
		}
	}
	_, reasons, _ := strings.Cut(string(page), "\n### Why a worker stops\n")
	source, err = os.ReadFile("state/reason.go")
	if err != nil {
		t.Fatal(err)
	}
	said, listed := first(source, `(?m)^\tStop\w+ +Reason = "([^"]+)"`),
		first([]byte(reasons), "(?m)^- `([^`]+)`: ")
	if len(said) == 0 || !slices.Equal(said, listed) {
		t.Errorf("reasons to stop in state/reason.go and docs/HOOKS.md differ:\n%q\n%q", said, listed)
	}
}

// TestReadmeLines: each line of code in README.md's section of short examples is in one of the examples above.
func TestReadmeLines(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	code := func(line string) string { // without its comment and alignment
		line, _, _ = strings.Cut(line, " // ")
		return strings.TrimSpace(strings.ReplaceAll(line, "mail.", ""))
	}
	compiled := map[string]bool{}
	for line := range strings.Lines(string(source)) {
		compiled[code(line)] = true
	}
	_, section, _ := strings.Cut(string(page), "\n## In a few lines\n")
	section, _, _ = strings.Cut(section, "\n## ")
	checked := 0
	for i, block := range strings.Split(section, "```") {
		for line := range strings.Lines(strings.TrimPrefix(block, "go\n")) {
			if i%2 == 1 && code(line) != "" {
				checked++
				if !compiled[code(line)] {
					t.Errorf("README.md shows a line that no example has: %s", line)
				}
			}
		}
	}
	if checked < 12 {
		t.Errorf("found %d lines of code: has the section of README.md another form?", checked)
	}
}

// exportedNames returns the names that packages export, as "dir.Name" and "dir.Type.Name" for methods and fields; the
// root's dir is "delayed".
func exportedNames(t *testing.T, dirs map[string]string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for pkg, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				addNames(names, pkg, d)
			}
		}
	}
	return names
}

func addNames(names map[string]bool, pkg string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			typ := d.Recv.List[0].Type
			if star, ok := typ.(*ast.StarExpr); ok {
				typ = star.X
			}
			if id, ok := typ.(*ast.Ident); ok {
				name = id.Name + "." + name
			}
		}
		names[pkg+"."+name] = true
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, id := range s.Names {
					names[pkg+"."+id.Name] = true
				}
			case *ast.TypeSpec:
				names[pkg+"."+s.Name.Name] = true
				if st, ok := s.Type.(*ast.StructType); ok {
					for _, field := range st.Fields.List {
						for _, id := range field.Names {
							names[pkg+"."+s.Name.Name+"."+id.Name] = true
						}
					}
				}
			}
		}
	}
}

// Every name of ours in docs/MIGRATION.md exists.
func TestMigrationNames(t *testing.T) {
	text, err := os.ReadFile("docs/MIGRATION.md")
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]string{
		"delayed": ".", "workermain": "workermain", "delayedtest": "delayedtest", "rediscluster": "rediscluster",
		"redissentinel": "redissentinel", "delayedprom": "contrib/prometheus",
		"inspect": "inspect", "semaphore": "semaphore", "event": "event", "state": "state", "web": "web",
	}
	names := exportedNames(t, packages)
	// Variables of the page's examples, and types named without their package.
	of := map[string]string{
		"q": "Queue", "ref": "Ref", "rdb": "Store", "w": "Worker", "Worker": "Worker", "WorkerConfig": "WorkerConfig",
		"QueueConfig": "QueueConfig",
		"Entry":       "Entry", "Task": "Task", "SchedulerConfig": "SchedulerConfig",
	}
	n := 0
	for _, m := range regexp.MustCompile(`\b([A-Za-z]+)\.([A-Z][A-Za-z]*)(?:\.([A-Z][A-Za-z]*))?`).
		FindAllStringSubmatch(string(text), -1) {
		var name string
		switch {
		case packages[m[1]] != "":
			name = m[1] + "." + m[2]
			if m[3] != "" {
				name += "." + m[3]
			}
		case of[m[1]] != "":
			name = "delayed." + of[m[1]] + "." + m[2]
		default:
			continue
		}
		n++
		if !names[name] {
			t.Errorf("docs/MIGRATION.md names %s: there is no %s", m[0], name)
		}
	}
	if n < 100 {
		t.Errorf("only %d names of ours were found", n)
	}
}

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
	room := regexp.MustCompile("^`(\\w+)`: ")
	for _, text := range strings.Split(section("### Rooms of the engine"), "\n- ")[1:] {
		dir := "internal/engine/"
		if m := room.FindStringSubmatch(text); m != nil {
			dir += m[1] + "/"
		}
		for _, m := range engineFile.FindAllStringSubmatch(text, -1) {
			if !names.paths[dir+m[1]] {
				t.Errorf("%s has no %s", dir, m[1])
			}
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
