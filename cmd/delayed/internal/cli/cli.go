// Package cli is the command delayed: one file for each noun, with what it prints as JSON and for people.
package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	xterm "golang.org/x/term"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
)

// Streams are what a command has of its process. Tests make their own.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	// Columns returns the width of the terminal that Out is; 0 if it is none.
	Columns func() int
	// Asks: somebody can be asked, because In and Err are terminals. Bars: Err is one.
	Asks, Bars bool
	// Screen: In and Out are terminals.
	Screen bool
	Now    func() time.Time
}

// Process returns the streams of this process.
func Process() *Streams {
	terminal := func(f *os.File) bool { return xterm.IsTerminal(int(f.Fd())) }
	return &Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Now: time.Now,
		Columns: func() int {
			width, _, err := xterm.GetSize(int(os.Stdout.Fd()))
			if err != nil {
				return 0
			}
			return width
		},
		Asks: terminal(os.Stdin) && terminal(os.Stderr), Bars: terminal(os.Stderr),
		Screen: terminal(os.Stdin) && terminal(os.Stdout),
	}
}

// Main runs a command line and returns the exit code of the process.
func Main(args []string, streams *Streams) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process
	return Run(ctx, args, streams)
}

// Run is Main without signals: the end of ctx means Ctrl-C.
func Run(ctx context.Context, args []string, streams *Streams) int {
	a := &app{Streams: streams}
	defer a.close()
	root := a.root() //nolint:contextcheck // commands get theirs from cobra
	root.SetArgs(joinWatch(args))
	err := root.ExecuteContext(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errInterrupted
	}
	return a.exit(err)
}

// app is one run of the command.
type app struct {
	*Streams
	settings

	rdb   *delayed.Store
	ins   *inspect.Inspector
	shown bool // something was printed
}

// root returns the command with all others below it.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "delayed",
		Short: "See and steer task queues on Redis",
		Long: "delayed shows what task queues hold and what their workers do, and acts on tasks, queues, workers\n" +
			"and periodic entries.\n\n" + urlHelp + "\n\n" + exitHelp,
		Example: "  delayed queues\n" +
			"  delayed tasks ls mail --state retry --func Welcome\n" +
			"  delayed retry --all --queue mail --state archived --error timeout\n" +
			"  delayed enqueue mail.Welcome 42 '\"en\"'",
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		hint := ""
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) && strings.Trim(unknown.GetSpecifiedShortnames(), "0123456789.eE-") == "" &&
			unknown.GetSpecifiedShortnames() != "" {
			hint = ": write -- before arguments that begin with -, and flags before that"
		}
		return usagef("%w%s; see %s --help", err, hint, cmd.CommandPath())
	})
	root.Args = unknownCommand
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	a.flags(root.PersistentFlags())
	root.AddGroup(&cobra.Group{ID: "look", Title: "Look:"}, &cobra.Group{ID: "tasks", Title: "Act on tasks:"},
		&cobra.Group{ID: "steer", Title: "Steer queues, workers and periodic entries:"},
		&cobra.Group{ID: "other", Title: "Other:"})
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("look", a.queueCommand(), a.taskCommand(), a.workerCommand(), a.functionsCommand(), a.cronCommand(),
		a.groupCommand(), a.statsCommand(), a.historyCommand(), a.auditCommand(), a.doctorCommand(), a.monitorCommand(),
		a.topCommand(), a.webCommand(), a.tailCommand(), a.scaleCommand())
	add("tasks", a.enqueueCommand(), a.exportCommand(), a.importCommand())
	add("tasks", a.actionCommands()...)
	add("steer", a.queueControls()...)
	add("other", a.versionCommand(), a.benchCommand())
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
	a.arguments(root)
	a.completeFlag(root, "profile", a.completeProfiles)
	for _, cmd := range append(root.Commands(), root) {
		cmd.SuggestionsMinimumDistance = 2
	}
	return root
}

// connect makes the handle on Redis and the inspector. It does not connect.
func (a *app) connect() error {
	if a.ins != nil {
		return nil
	}
	target, err := a.target(a.Getenv)
	if err != nil {
		return err
	}
	if a.rdb, err = target.dial(); err != nil {
		return err
	}
	if target.prefix != "" {
		a.rdb = a.rdb.WithPrefix(target.prefix)
	}
	a.ins, err = inspect.New(a.rdb, inspect.Config{})
	return err
}

func (a *app) close() {
	if a.rdb != nil {
		a.rdb.Close()
	}
}

// known connects, and returns an error if there is no queue with one of the names.
func (a *app) known(ctx context.Context, names ...string) error {
	if err := a.connect(); err != nil {
		return err
	}
	for _, name := range names {
		if _, err := a.queue(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// done prints a line about what was done.
func (a *app) done(cells ...term.Cell) {
	p := a.page()
	p.Line(cells...)
	io.WriteString(a.Out, p.String()) //nolint:errcheck // there is nobody to report it to
}

// unknownCommand is the Args of commands that take none but names of other commands.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := "unknown command " + quote(args[0]) + " for " + cmd.CommandPath()
	if len(args[0]) < 50 {
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			text += "; did you mean " + strings.Join(near, " or ") + "?"
		}
	}
	return usagef("%s; see %s --help", text, cmd.CommandPath())
}

// versionView is what this command was built from.
type versionView struct {
	Version  string `json:"version"`
	Library  string `json:"library"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version",
		RunE: func(*cobra.Command, []string) error { return output(a, readVersion(), printVersion) },
	}
}

func readVersion() *versionView {
	v := &versionView{
		Version: "unknown", Library: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version = info.Main.Version
	for _, dep := range info.Deps {
		if dep.Path == "github.com/godelayed/delayed" {
			v.Library = dep.Version
		}
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	return v
}

func printVersion(p *term.Page, v *versionView) {
	text := "delayed " + v.Version
	if v.Revision != "" {
		text += " revision " + v.Revision
	}
	p.Line(term.C(text + " (library " + v.Library + ", " + v.Go + " " + v.Platform + ")"))
}
