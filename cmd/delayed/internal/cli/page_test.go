package cli

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/godelayed/delayed/inspect"
)

const page = "../../../../docs/CLI.md"

// pageHead has ¬ in place of backquotes.
const pageHead = `# The command delayed

<!-- Written by make generate, from the help of the command. -->

¬¬¬sh
go install github.com/godelayed/delayed/cmd/delayed@latest
delayed queues              # what waits, since when, who works
delayed tasks mail          # the tasks of a queue, as calls
delayed doctor              # what is wrong, and what to do
delayed top                 # all of it live, with keys to act: see TOP.md
delayed web                 # all of it live, in a browser
¬¬¬

Nouns and verbs may change places where that is natural: ¬delayed queue pause mail¬ is ¬delayed pause mail¬. With
¬--json¬ each command prints a document; [cmd/delayed/schema](../cmd/delayed/schema) has a JSON Schema for each kind.
Human tables heed the width of the terminal, ¬NO_COLOR¬ and ¬--no-color¬. Texts of tasks may contain anything: what does
not print is escaped. ¬source <(delayed completion bash)¬ lets the shell complete names of queues, functions, workers,
entries and ids (bash needs its package bash-completion for that); zsh, fish and PowerShell are known too.

## Which Redis

¬¬¬
%s
¬¬¬

The configuration is in ¬$XDG_CONFIG_HOME/delayed/config.yaml¬, or else ¬~/.config/delayed/config.yaml¬:

¬¬¬yaml
default: local
profiles:
  local: {url: "redis://localhost:6379/0"}
  shop: {url: "rediss://ops:secret@redis.example.com/0", prefix: "shop:"}
  live:
    url: "rediss://ops:secret@live.example.com/0"
    web: {tokens: [{name: ann, role: admin, secret: "at least 16 characters"}]} # who may use delayed web
¬¬¬

## Exit codes

¬¬¬
%s
¬¬¬

## Flags of all commands

`

// TestPage holds docs/CLI.md against the help of the commands. With -update it writes it.
func TestPage(t *testing.T) {
	t.Parallel()
	root := (&app{Streams: &Streams{}}).root()
	root.InitDefaultCompletionCmd()
	var b strings.Builder
	fmt.Fprintf(&b, strings.ReplaceAll(pageHead, "¬", "`"), urlHelp, strings.TrimPrefix(exitHelp, "Exit codes:\n"))
	listFlags(&b, root.PersistentFlags(), "")
	b.WriteString("\n## Filters of tasks\n\n")
	listFlags(&b, filters(), "")
	for _, cmd := range root.Commands() {
		if !cmd.IsAvailableCommand() || cmd.Name() == "help" || cmd.Name() == "completion" || nested(root, cmd) != "" {
			continue
		}
		writeCommand(&b, root, cmd)
	}
	text := b.String()
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	found, err := os.ReadFile(page)
	if err != nil || string(found) != text {
		t.Errorf("%s is not the help of the commands (%v): run make generate", page, err)
	}
}

// nested returns the noun below which a command of the root stands too, "" if there is none.
func nested(root, cmd *cobra.Command) string {
	for _, noun := range root.Commands() {
		for _, c := range noun.Commands() {
			if c.Name() == cmd.Name() && c.Short == cmd.Short {
				return noun.Name()
			}
		}
	}
	return ""
}

// shared returns the flags that several verbs of a noun have, with the same text in each, without filters.
func shared(noun *cobra.Command) *pflag.FlagSet {
	flags, count := pflag.NewFlagSet("", 0), map[string]int{}
	for _, verb := range noun.Commands() {
		verb.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			key := f.Name + f.Usage
			if count[key]++; count[key] == 3 && f.Name != "help" && !isFilter(f) {
				flags.AddFlag(f)
			}
		})
	}
	return flags
}

// filters returns the flags of addFilter.
func filters() *pflag.FlagSet {
	cmd := &cobra.Command{}
	addFilter(cmd, &inspect.Filter{})
	return cmd.Flags()
}

func isFilter(f *pflag.Flag) bool {
	g := filters().Lookup(f.Name)
	return g != nil && g.Usage == f.Usage
}

// writeCommand writes a command of the root, and its verbs as a list.
func writeCommand(b *strings.Builder, root, cmd *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n", cmd.CommandPath())
	writeText(b, root, cmd, "", "")
	writeFlags(b, cmd, pflag.NewFlagSet("", 0), "")
	if !cmd.HasSubCommands() {
		return
	}
	b.WriteString("\nVerbs:\n\n")
	several := shared(cmd)
	for _, c := range cmd.Commands() {
		if c.Name() == "ls" && sameFlags(c, cmd) {
			writeWords(b, usage(root, c)+" the same as `"+cmd.CommandPath()+"`.", "- ", "  ")
			continue
		}
		writeText(b, root, c, "- ", "  ")
		writeFlags(b, c, several, "  ")
	}
	if several.HasFlags() {
		b.WriteString("\nFlags of several verbs:\n\n")
		listFlags(b, several, "")
	}
}

func sameFlags(a, b *cobra.Command) bool {
	return a.LocalNonPersistentFlags().FlagUsages() == b.LocalNonPersistentFlags().FlagUsages()
}

// usage returns how a command is called, with its other names, and a colon.
func usage(root, cmd *cobra.Command) string {
	var also []string
	for _, alias := range cmd.Aliases {
		also = append(also, "`"+cmd.Parent().CommandPath()+" "+alias+"`")
	}
	for _, c := range root.Commands() {
		if c.Name() == cmd.Name() && c != cmd && c.Short == cmd.Short {
			for _, name := range append([]string{c.Name()}, c.Aliases...) {
				also = append(also, "`delayed "+name+"`")
			}
		}
	}
	line := "`" + strings.TrimSuffix(cmd.UseLine(), " [flags]") + "`"
	if len(also) > 0 {
		line += " (also " + strings.Join(also, ", ") + ")"
	}
	return line + ":"
}

// writeText writes usage, description and examples.
func writeText(b *strings.Builder, root, cmd *cobra.Command, first, rest string) {
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	text = strings.NewReplacer("<", "&lt;", "|", `\|`).Replace(text)
	text = strings.ToLower(text[:1]) + text[1:]
	for i, para := range strings.Split(text, "\n\n") {
		if i == 0 {
			para = usage(root, cmd) + " " + para
		} else {
			b.WriteString("\n")
			first = rest
		}
		writeWords(b, para, first, rest)
	}
	if cmd.Example != "" {
		example := strings.ReplaceAll(strings.TrimPrefix(cmd.Example, "  "), "\n  ", "\n"+rest)
		fmt.Fprintf(b, "\n%s```sh\n%[1]s%s\n%[1]s```\n", rest, example)
	}
}

// writeFlags writes the flags of a command as a list, and of those that several commands have the names alone.
func writeFlags(b *strings.Builder, cmd *cobra.Command, several *pflag.FlagSet, indent string) {
	own, names, filtered := pflag.NewFlagSet("", 0), []string(nil), false
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		switch g := several.Lookup(f.Name); {
		case f.Name == "help":
		case isFilter(f) && cmd.LocalNonPersistentFlags().Lookup("arg") != nil:
			filtered = true
		case g != nil && g.Usage == f.Usage:
			names = append(names, "`--"+f.Name+"`")
		default:
			own.AddFlag(f)
		}
	})
	if indent == "" && (own.HasFlags() || filtered) {
		b.WriteString("\n")
	}
	listFlags(b, own, indent)
	if filtered {
		names = append(names, "[filters](#filters-of-tasks)")
	}
	if names != nil {
		writeWords(b, strings.Join(names, ", "), indent+"- ", indent+"  ")
	}
}

func listFlags(b *strings.Builder, flags *pflag.FlagSet, indent string) {
	flags.VisitAll(func(f *pflag.Flag) {
		name := "--" + f.Name
		if kind := f.Value.Type(); f.NoOptDefVal != "" && kind != "bool" {
			name += "[=" + kind + "]"
		} else if kind != "bool" {
			name += " " + kind
		}
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		text := f.Usage
		if d := f.DefValue; d != "" && d != "0" && d != "0s" && d != "false" && d != "[]" {
			text += " (default " + d + ")"
		}
		writeWords(b, "`"+name+"`: "+text, indent+"- ", indent+"  ")
	})
}

// writeWords writes words in lines of at most 120 columns.
func writeWords(b *strings.Builder, text, first, rest string) {
	line := first
	for i, w := range strings.Fields(text) {
		if i > 0 && len(line)+1+len(w) > 120 {
			b.WriteString(line + "\n")
			line = rest
		} else if i > 0 {
			line += " "
		}
		line += w
	}
	b.WriteString(line + "\n")
}
