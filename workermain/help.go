package workermain

import (
	"flag"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/godelayed/delayed/internal/buildinfo"
)

// printHelp lists all flags, with the program's own at the end.
func (s *settings) printHelp(out io.Writer, flags *flag.FlagSet) {
	fmt.Fprintf(out, "Usage: %s [flags]\n\nRuns delayed function calls until a signal stops it.\n\n", flags.Name())
	known := map[string]bool{}
	for _, o := range s.options {
		known[o.flag] = true
		printFlag(out, o.flag, o.value, o.help, o.initial)
		if len(o.env) > 0 {
			fmt.Fprintf(out, "        environment: %s\n", strings.Join(o.env, ", "))
		}
	}
	flags.VisitAll(func(f *flag.Flag) {
		if !known[f.Name] {
			value, help := flag.UnquoteUsage(f)
			printFlag(out, f.Name, value, help, f.DefValue)
		}
	})
	fmt.Fprint(out, signalHelp, `
Exit codes: 0 clean, 1 start failed or Redis did not confirm how tasks ended, 2 wrong flags or environment,
3 handlers did not stop, 4 too many handlers are stuck, 130 second signal to stop.
`)
}

func printFlag(out io.Writer, name, value, help, initial string) {
	if value != "" {
		value = " " + value
	}
	if initial != "" && initial != "false" {
		help += " (default " + initial + ")"
	}
	fmt.Fprintf(out, "  -%s%s\n        %s\n", name, value, help)
}

// versionText returns the versions of the program, of the library and of Go.
func versionText(name string) string {
	build := buildinfo.Read()
	return fmt.Sprintf("%s %v (delayed %s, %s %s/%s)", name, build, build.Library, runtime.Version(), runtime.GOOS,
		runtime.GOARCH)
}
