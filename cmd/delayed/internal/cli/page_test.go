package cli

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
	writeFlags(&b, root.PersistentFlags())
	for _, cmd := range root.Commands() {
		if !cmd.IsAvailableCommand() || cmd.Name() == "help" || cmd.Name() == "completion" || nested(root, cmd) != "" {
			continue
		}
		writeCommand(&b, root, cmd, 2)
	}
	text := strings.ReplaceAll(strings.TrimRight(b.String(), "\n")+"\n", "\n\n\n", "\n\n")
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

func writeCommand(b *strings.Builder, root, cmd *cobra.Command, level int) {
	fmt.Fprintf(b, "\n%s %s\n\n", strings.Repeat("#", level), cmd.CommandPath())
	fmt.Fprintf(b, "```\n%s\n```\n\n", strings.TrimSuffix(cmd.UseLine(), " [flags]"))
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	for para := range strings.SplitSeq(text, "\n\n") {
		wrap(b, strings.Fields(strings.NewReplacer("<", "&lt;", "|", `\|`).Replace(para)), "", "")
		b.WriteString("\n")
	}
	var also []string
	for _, alias := range cmd.Aliases {
		also = append(also, "`"+cmd.Parent().CommandPath()+" "+alias+"`")
	}
	for _, c := range root.Commands() {
		if c.Name() == cmd.Name() && c != cmd && c.Short == cmd.Short {
			also = append(also, "`delayed "+c.Name()+"`")
			for _, alias := range c.Aliases {
				also = append(also, "`delayed "+alias+"`")
			}
		}
	}
	if len(also) > 0 {
		wrap(b, strings.Fields("Also "+strings.Join(also, ", ")+"."), "", "")
		b.WriteString("\n")
	}
	if cmd.Example != "" {
		fmt.Fprintf(b, "```sh\n%s\n```\n\n", strings.ReplaceAll(strings.TrimPrefix(cmd.Example, "  "), "\n  ", "\n"))
	}
	writeFlags(b, cmd.LocalNonPersistentFlags())
	for _, c := range cmd.Commands() {
		writeCommand(b, root, c, level+1)
	}
}

func writeFlags(b *strings.Builder, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
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
		wrap(b, append([]string{"`" + name + "`:"}, strings.Fields(text)...), "- ", "  ")
	})
}

// wrap writes words in lines of at most 120 columns.
func wrap(b *strings.Builder, words []string, first, rest string) {
	line := first
	for i, w := range words {
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
