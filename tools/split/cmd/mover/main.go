package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"mover/core"
)

func main() {
	dir := flag.String("dir", ".", "root of the module")
	planName := flag.String("plan", "", "plan")
	src := flag.String("src", ".", "the package that is split, relative to dir")
	v := flag.Bool("v", false, "print all")
	write := flag.Bool("write", false, "write")
	force := flag.Bool("force", false, "write although there are shadows (and, twice as bad, anything else)")
	pull := flag.Bool("pull", false, "pull down whatever lower packages use, and print the decl lines for it")
	helpers := flag.Bool("helpers", false, "copy helpers of tests to where they are used, and print the copy lines for it")
	check := flag.Bool("check", true, "build and vet after writing")
	quiet := flag.Bool("q", false, "with -write: no report unless it forbids to write")
	flag.BoolVar(&core.Nested, "nested", false, "read the nested modules of go.work too (slow; for BREAKS)")
	flag.Parse()
	b, err := os.ReadFile(*planName)
	die(err)
	plan, err := core.ParsePlan(string(b))
	die(err)
	w, err := core.Load(*dir, *src, plan, nil, false)
	die(err)
	die(w.Assign())
	if *pull {
		for _, l := range w.Pull() {
			fmt.Println(l)
		}
	}
	if *helpers {
		for _, l := range w.Helpers() {
			fmt.Println(l)
		}
	}
	rep := w.Analyze()
	fatal, shadows := rep.Count()
	if !*quiet || !*write || fatal > 0 || shadows > 0 && !*force {
		rep.Print(*v)
	}
	fmt.Printf("%d findings forbid to write, %d shadows\n", fatal, shadows)
	if !*write {
		return
	}
	if (fatal > 0 || shadows > 0) && !*force {
		fmt.Println("not written")
		os.Exit(1)
	}
	if o, _ := exec.Command("git", "-C", *dir, "status", "--porcelain", "--untracked-files=no").Output(); len(o) > 0 {
		fmt.Println("note: the tree has changes that are not committed: repatch needs the old tree as a commit (see its -base)")
	}
	out, err := w.Compose()
	die(err)
	base, _ := exec.Command("git", "-C", *dir, "rev-parse", "HEAD").Output()
	die(w.WriteLines(*planName+".lines.json", strings.TrimSpace(string(base)), string(b), out))
	die(w.Commit(out))
	add := append([]string{"-C", *dir, "add", "-A", "--"}, out.Removed...)
	for _, f := range out.Changed {
		add = append(add, f)
	}
	if o, err := exec.Command("git", add...).CombinedOutput(); err != nil {
		fmt.Printf("git add: %s\n", o)
	}
	fmt.Printf("written: %d files, %d removed; %d lines of more than 120 columns in what was written\n", len(out.Changed), len(out.Removed), out.Long)
	if !*check {
		return
	}
	for _, args := range [][]string{{"build", "./..."}, {"vet", "./..."}} {
		c := exec.Command("go", args...)
		c.Dir = *dir
		o, err := c.CombinedOutput()
		if err != nil {
			fmt.Printf("go %s: %v\n%s", strings.Join(args, " "), err, o)
			os.Exit(2)
		}
		fmt.Printf("go %s: fine\n", strings.Join(args, " "))
	}
}

func die(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
