// repatch rewrites patches after mover -write.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"mover/core"
)

func main() {
	dir := flag.String("dir", ".", "the tree as it is now")
	lines := flag.String("lines", "", "PLAN.lines.json")
	base := flag.String("base", "", "commit of the old tree (else that of PLAN.lines.json)")
	out := flag.String("out", "", "directory for the new patches (else in place)")
	dry := flag.Bool("n", false, "write nothing")
	check := flag.Bool("check", false, "go vet of what each new patch touches (slow)")
	flag.Parse()
	abs, err := filepath.Abs(*dir)
	die(err)
	r, err := core.NewRepatcher(abs, *lines, *base)
	die(err)
	defer r.Close()
	var same, changed, failed int
	for _, p := range flag.Args() {
		b, err := os.ReadFile(p)
		die(err)
		name := filepath.Base(p)
		res, notes, err := r.Patch(string(b))
		for _, n := range notes {
			fmt.Printf("note %s: %s\n", name, n)
		}
		if err != nil {
			failed++
			fmt.Printf("HAND %s: %v\n", name, err)
			continue
		}
		if *check && res != string(b) {
			if err := vet(abs, res); err != nil {
				fmt.Printf("VET %s: %v\n", name, err)
			}
		}
		to := p
		if *out != "" {
			to = filepath.Join(*out, name)
		}
		if res == string(b) {
			same++
			if *out == "" {
				continue
			}
		} else {
			changed++
		}
		if !*dry {
			die(os.WriteFile(to, []byte(res), 0o644))
		}
	}
	fmt.Printf("%d as they were, %d rewritten, %d for hand work\n", same, changed, failed)
}

// vet compiles the packages that a patch touches, with an overlay.
func vet(dir, patch string) error {
	tmp, err := os.MkdirTemp("", "vet")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	over := map[string]string{}
	dirs := map[string]bool{}
	for _, l := range strings.Split(patch, "\n") {
		f, ok := strings.CutPrefix(l, "+++ b/")
		if !ok {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			return err
		}
		os.MkdirAll(filepath.Join(tmp, filepath.Dir(f)), 0o755)
		if err := os.WriteFile(filepath.Join(tmp, f), b, 0o644); err != nil {
			return err
		}
		over[filepath.Join(dir, f)] = filepath.Join(tmp, f)
		if strings.HasSuffix(f, ".go") {
			dirs["./"+filepath.Dir(f)] = true
		}
	}
	if len(dirs) == 0 {
		return nil
	}
	pf := filepath.Join(tmp, "p.patch")
	os.WriteFile(pf, []byte(patch), 0o644)
	c := exec.Command("git", "apply", pf)
	c.Dir = tmp
	if o, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s", o)
	}
	j, _ := json.Marshal(map[string]any{"Replace": over})
	of := filepath.Join(tmp, "overlay.json")
	os.WriteFile(of, j, 0o644)
	args := []string{"build", "-overlay", of, "-o", os.DevNull}
	for d := range dirs {
		args = append(args, d)
	}
	c = exec.Command("go", args...)
	c.Dir = dir
	if o, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s", o)
	}
	return nil
}

func die(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
