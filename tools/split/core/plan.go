// Package core is what mover, declmove and repatch share.
package core

import (
	"bufio"
	"fmt"
	"path/filepath"
	"strings"
)

type PlanFile struct {
	Dir, Pattern string
	Line         int
}

type PlanDecl struct {
	Dir, File string
	Name      string
	Methods   bool
	Line      int
	Found     bool
}

type PlanX struct {
	Dir, Pattern string
	Line         int
}

type Plan struct {
	Dirs    []string // ground first
	Files   []PlanFile
	Exclude []PlanFile
	XTest   []PlanX
	Decls   []*PlanDecl
	Copies  []*PlanDecl
	Alias   map[string]bool
	Rename  map[string]string
	Names   map[string]string // dir → package name
	Shadow  map[string]string
	Doc     map[string]string // dir → package comment
}

func ParsePlan(text string) (*Plan, error) {
	p := &Plan{Alias: map[string]bool{}, Rename: map[string]string{}, Names: map[string]string{}, Shadow: map[string]string{}, Doc: map[string]string{}}
	seen := map[string]bool{}
	dir := func(d string) string {
		d = filepath.ToSlash(filepath.Clean(d))
		if d != "." && !seen[d] {
			return d + "\x00"
		}
		return d
	}
	sc := bufio.NewScanner(strings.NewReader(text))
	sc.Buffer(nil, 1<<20)
	n, cont := 0, ""
	for sc.Scan() {
		n++
		line := sc.Text()
		if t := strings.TrimSpace(line); strings.HasPrefix(t, "doc ") {
			f := strings.SplitN(t, " ", 3)
			if len(f) == 3 {
				p.Doc[filepath.Clean(f[1])] = f[2]
			}
			continue
		}
		if i := strings.IndexByte(line, '#'); i >= 0 {
			line = line[:i]
		}
		line = cont + strings.TrimSpace(line)
		cont = ""
		if strings.HasSuffix(line, "\\") {
			cont = strings.TrimSuffix(line, "\\") + " "
			continue
		}
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		bad := func(s string) error { return fmt.Errorf("plan line %d: %s: %s", n, s, line) }
		if len(f) < 2 {
			return nil, bad("too short")
		}
		args := f[1:]
		switch f[0] {
		case "pkg":
			d := strings.TrimSuffix(dir(args[0]), "\x00")
			if d != "." && !seen[d] {
				seen[d] = true
				p.Dirs = append(p.Dirs, d)
			}
			for _, a := range args[1:] {
				if strings.HasPrefix(a, "!") {
					p.Exclude = append(p.Exclude, PlanFile{d, a[1:], n})
				} else {
					p.Files = append(p.Files, PlanFile{d, a, n})
				}
			}
		case "xtest":
			d := "."
			if strings.HasPrefix(args[0], "@") {
				d = filepath.Clean(args[0][1:])
				args = args[1:]
			}
			for _, a := range args {
				p.XTest = append(p.XTest, PlanX{d, a, n})
			}
		case "decl", "type", "copy":
			d := filepath.Clean(args[0])
			if rest, ok := strings.CutPrefix(args[0], "xtest:"); ok {
				d = "xtest:" + filepath.Clean(rest)
			}
			args = args[1:]
			file := ""
			if len(args) > 0 && strings.HasPrefix(args[0], "@") {
				file, args = args[0][1:], args[1:]
			}
			for _, a := range args {
				m := f[0] == "type"
				if strings.HasSuffix(a, "+") {
					m, a = true, strings.TrimSuffix(a, "+")
				}
				if f[0] == "copy" {
					p.Copies = append(p.Copies, &PlanDecl{Dir: d, File: file, Name: a, Methods: m, Line: n})
					continue
				}
				p.Decls = append(p.Decls, &PlanDecl{Dir: d, File: file, Name: a, Methods: m, Line: n})
			}
		case "alias":
			for _, a := range args {
				p.Alias[a] = true
			}
		case "rename":
			if len(args)%2 != 0 {
				return nil, bad("pairs expected")
			}
			for i := 0; i < len(args); i += 2 {
				to := args[i+1]
				if j := strings.LastIndexByte(to, '.'); j >= 0 {
					to = to[j+1:]
				}
				p.Rename[args[i]] = to
			}
		case "name":
			if len(args) != 2 {
				return nil, bad("name PATH NAME")
			}
			p.Names[filepath.Clean(args[0])] = args[1]
		case "shadow":
			if len(args)%2 != 0 {
				return nil, bad("pairs expected")
			}
			for i := 0; i < len(args); i += 2 {
				p.Shadow[args[i]] = args[i+1]
			}
		default:
			return nil, bad("unknown verb")
		}
	}
	for _, d := range p.Decls {
		if d.Dir != "." && !seen[d.Dir] {
			return nil, fmt.Errorf("plan line %d: no pkg line for %s", d.Line, d.Dir)
		}
	}
	return p, nil
}
