// Package cli contains the commands of etcd-medic: one file per command, each with an options struct, a constructor and
// a run function. The libraries compute results, package render prints them, and exit.go maps errors to exit codes.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/internal/progress"
	"github.com/etcd-medic/etcd-medic/internal/scratch"
)

// Main runs the command line and returns the exit code.
func Main(ctx context.Context, args []string, s *Streams) int {
	s.guard()
	s.display = progress.New(s.show)
	if s.Patience > 0 {
		s.display.Patience = s.Patience
	}
	root := newRoot(s)
	root.SetArgs(args)
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		completeFlags(root)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- &defectError{what: p, stack: debug.Stack()}
			}
		}()
		done <- root.ExecuteContext(ctx)
	}()
	err := s.await(ctx, stop, done)
	if err == nil {
		err = s.helpErr
	}
	if ctx.Err() != nil && !errors.Is(err, errDown) {
		err = context.Canceled
		if cause, ok := errors.AsType[*memoryError](context.Cause(ctx)); ok {
			err = cause
		}
	}
	s.display.Close()
	s.clearStatus()
	if s.pager != nil && ctx.Err() == nil {
		err = errors.Join(err, s.pager.close())
	}
	s.printError(err)
	return exitCode(err)
}

const rootLong = `etcd-medic is the forensic and repair toolkit for etcd.

It reads copies of data dirs (and backups, db files, WAL folders) of etcd 3.3 to 3.8 offline and read-only, finds the
first invariant that broke, names the cause with evidence, and the member to keep. Inputs are never written to.

Start with:

  etcd-medic diagnose node1=DIR node2=DIR node3=DIR

Help topics: etcd-medic help sources | formats | exit-codes | evidence-rule | environment`

// await waits for the end of a command, which is interrupted if it takes too much memory.
func (s *Streams) await(ctx context.Context, stop context.CancelCauseFunc, done <-chan error) error {
	var over <-chan struct{}
	if s.memory != nil {
		over = s.memory.over
	}
	select {
	case err := <-done:
		return err
	case <-over:
		stop(s.memory.err)
	case <-ctx.Done():
	}
	return s.ended(ctx, done)
}

// grace is how long an interrupted command that only reads may take to end. Then the program ends, even if the command
// is waiting for a disk or a pipe.
const grace = 600 * time.Millisecond

// ended waits for an interrupted command. A command that writes data or runs servers gets the time to clean up.
func (s *Streams) ended(ctx context.Context, done <-chan error) error {
	late := make(<-chan time.Time)
	if !s.orderly.Load() {
		late = time.After(grace)
	}
	select {
	case err := <-done:
		return err
	case <-late:
		return errors.Join(ctx.Err(), scratch.RemoveAll())
	}
}

// endsInOrder reports whether an interrupted command must be waited for: it writes data, answers requests or runs
// servers.
func endsInOrder(cmd *cobra.Command) bool {
	for c := cmd; c != nil; c = c.Parent() {
		if c.GroupID == "repair" || c.Name() == "watch" || c.Name() == "collect" {
			return true
		}
	}
	for _, name := range []string{"confirm", "drill"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Value.String() == "true" {
			return true
		}
	}
	return false
}

func newRoot(s *Streams) *cobra.Command {
	root := &cobra.Command{
		Use:                        "etcd-medic",
		Short:                      "forensic and repair toolkit for etcd",
		Long:                       rootLong,
		SilenceUsage:               true,
		SilenceErrors:              true,
		SuggestionsMinimumDistance: 2,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		DisableAutoGenTag:          true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			err := setFromEnv(cmd, s)
			s.boundMemory()
			s.orderly.Store(endsInOrder(cmd))
			s.showProgress(cmd)
			s.page(cmd)
			return err
		},
	}
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetVersionTemplate("etcd-medic {{.Version}}\n")
	root.PersistentFlags().BoolVar(&s.noColor, "no-color", false, "no colours, also on a terminal (or set NO_COLOR)")
	root.PersistentFlags().BoolVar(&s.noPager, "no-pager", false, "no pager for long results on a terminal")
	s.memoryFlag(root)
	root.SetHelpCommand(newHelpCmd())
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddGroup(&cobra.Group{ID: "main", Title: "Find out:"}, &cobra.Group{ID: "look", Title: "Look inside:"},
		&cobra.Group{ID: "repair", Title: "Bring back:"}, &cobra.Group{ID: "more", Title: "More:"})
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("main", newCollectCmd(s, runCollect), newWatchCmd(s, runWatch), newDiagnoseCmd(s, runDiagnose),
		newReportCmd(s, runReport),
		newBundleCmd(s, runBundle), newInspectCmd(s, runInspect), newCompareCmd(s, runCompare),
		newHistoryCmd(s, runHistory),
		newVerifyCmd(s, runVerify), newPreflightCmd(s, runPreflight), newExplainCmd(s, runExplain))
	add("look", newDumpLogCmd(s, runDumpLog), newDumpDBCmd(s, runDumpDB))
	add("repair", newExtractCmd(s, runExtract), newRebuildCmd(s, runRebuild), newRestoreCmd(s, runRestore),
		newRepairCmd(s), newNodeCmd(s), newLabCmd(s, runLab))
	add("more", newVersionCmd(s), newCompletionCmd(s))
	root.AddCommand(newDocsCmd(s, runDocs))
	root.AddCommand(helpTopics()...)
	root.SetHelpCommandGroupID("more")
	sourcesFromEndpoints(root, s)
	versionFlags(root)
	asUsage(root)
	s.wrappedHelp(root)
	return root
}

// versionFlags adds --version to every command, as etcd's own programs have it. Only the help of the root shows it.
func versionFlags(root *cobra.Command) {
	root.Version = Version()
	for _, c := range allCommands(root) {
		c.Version = root.Version
		c.Flags().Bool("version", false, "version for etcd-medic")
		_ = c.Flags().MarkHidden("version")
	}
}

// newHelpCmd is cobra's help, except that an unknown topic is a usage error.
func newHelpCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND|TOPIC]",
		Short: "help about any command or topic",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			at, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return commandNames(at), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			at, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				word := args[len(args)-max(len(rest), 1)]
				return usagef(didYouMean(word, commandNames(at), "see etcd-medic --help"),
					"%q is neither a command nor a topic of help", word)
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		},
	}
}

// asUsage turns every error that cobra reports before a command starts into a usage error: unknown commands and flags,
// bad values, wrong numbers of arguments.
func asUsage(root *cobra.Command) {
	wrap := func(cmd *cobra.Command, err error) error {
		var u *usageError
		if err == nil || errors.As(err, &u) {
			return err
		}
		hint := "see " + cmd.CommandPath() + " --help"
		if name, ok := unknownFlag(err); ok {
			hint = didYouMean(name, flagNames(cmd), hint)
		}
		return usagef(hint, "%s", strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", " "))
	}
	root.SetFlagErrorFunc(wrap)
	for _, c := range append(allCommands(root), root) {
		args := c.Args
		if args == nil && c == root {
			args = rootArgs
		}
		c.Args = func(cmd *cobra.Command, a []string) error {
			if args == nil {
				return nil
			}
			return wrap(cmd, wrongArgs(cmd, a, args(cmd, a)))
		}
	}
}

// wrongArgs says how many arguments a command takes, in place of cobra's words: it calls an argument of a command that
// takes none an unknown command.
func wrongArgs(cmd *cobra.Command, args []string, err error) error {
	var u *usageError
	switch {
	case err == nil || errors.As(err, &u) || len(cmd.ValidArgs) > 0:
		return err
	case strings.HasPrefix(err.Error(), "unknown command"):
		hint := "see " + cmd.CommandPath() + " --help"
		if cmd.Flags().Lookup("data-dir") != nil {
			hint = "--data-dir names a data dir"
		}
		return usagef(hint, "%s takes no argument, and got %q", cmd.CommandPath(), args[0])
	}
	return fmt.Errorf("wrong number of arguments (%d): %s", len(args), cmd.UseLine())
}

func allCommands(c *cobra.Command) (out []*cobra.Command) {
	for _, sub := range c.Commands() {
		out = append(append(out, sub), allCommands(sub)...)
	}
	return out
}

// rootArgs suggests the command that may have been meant.
func rootArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := didYouMean(args[0], commandNames(cmd), "see "+cmd.CommandPath()+" --help")
	return usagef(hint, "%q is not a command of %s", args[0], cmd.CommandPath())
}

// settings are the flags with an environment variable: output, scratch, server, and login. Flags that select or change
// data have none, so that a variable can neither empty a listing nor give consent.
var settings = []string{"write-out", "fail-on", "values", "quiet", "timeout", "scratch-dir", "scratch", "work",
	"etcd-binary", "isolation", "max-memory",
	"confirm-timeout", "drill-timeout", "hook-timeout", "follow-idle", "stream-decoder-timeout"}

// logins are settings of commands that log in. In other commands, flags of the same names are filters.
var logins = []string{"cacert", "cert", "key", "user", "password-file"}

// isSetting reports whether a flag of a command has a variable. All flags of watch do, since it runs in containers and
// only reads.
func isSetting(cmd *cobra.Command, name string) bool {
	return slices.Contains(settings, name) || cmd.Name() == "watch" || name == tlsKey ||
		slices.Contains(logins, name) && logsIn(cmd, name)
}

// logsIn reports whether a command logs in, and the flag is not a filter.
func logsIn(cmd *cobra.Command, name string) bool {
	return cmd.Flags().Lookup("cacert") != nil && (name != "key" || cmd.Flags().Lookup(tlsKey) == nil)
}

// setFromEnv uses ETCD_MEDIC_FLAG_NAME as the default of --flag-name, if that is a setting. The command line takes
// precedence.
func setFromEnv(cmd *cobra.Command, s *Streams) error {
	var err error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		v := s.Getenv(envName(f.Name))
		if v == "" && isLogin(cmd, f.Name) {
			v = s.Getenv("ETCDCTL_" + strings.ToUpper(strings.TrimPrefix(f.Name, "tls-")))
		}
		if err != nil || f.Changed || v == "" || f.Name == "help" || f.Name == "endpoints" && readsEndpoints(cmd) {
			return
		}
		if !isSetting(cmd, f.Name) && !isLogin(cmd, f.Name) {
			if !slices.Contains(logins, f.Name) { // set for the commands that log in
				_, _ = fmt.Fprintf(s.Err, "note: %s has no effect: --%s is not a setting (etcd-medic help "+
					"environment)\n", envName(f.Name), f.Name)
			}
			return
		}
		if e := cmd.Flags().Set(f.Name, v); e != nil {
			err = usagef("", "environment %s=%q: %v", envName(f.Name), v, e)
		}
	})
	if u := cmd.Flags().Lookup("user"); err == nil && u != nil && logsIn(cmd, "user") &&
		cmd.Flags().Lookup("password-file") == nil {
		password := cmp.Or(s.Getenv("ETCD_MEDIC_PASSWORD"), s.Getenv("ETCDCTL_PASSWORD"))
		if name := u.Value.String(); name != "" && !strings.Contains(name, ":") && password != "" {
			err = u.Value.Set(name + ":" + password)
		}
	}
	return err
}

// isLogin reports whether a flag is about connecting to running members, for which etcdctl's own variables count too.
// --endpoints is such a flag only where it names the cluster; where it adds sources, see named.
func isLogin(cmd *cobra.Command, name string) bool {
	if name == "endpoints" {
		switch cmd.Name() {
		case "apply", "watch":
			return true
		case "collect": // of the cluster; without --all it copies the member of this host alone
			return cmd.Flags().Lookup("all").Value.String() == "true"
		}
		return false
	}
	return name == tlsKey || slices.Contains(logins[:4], name) && logsIn(cmd, name)
}

func envName(flag string) string {
	return "ETCD_MEDIC_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// output are the flags for writing a result.
type output struct {
	io     *Streams
	format render.Format
	opts   render.Options
}

func (o *output) flags(cmd *cobra.Command) {
	o.format = render.Table
	cmd.Flags().VarP(&formatFlag{f: &o.format}, "write-out", "w", "output format: "+strings.Join(render.Formats(), "|"))
	cmd.Flags().BoolVar(&o.opts.Values, "values", false, "show values of keys (default: length and digest)")
}

// rowFlags adds the flags of a command that lists rows.
func (o *output) rowFlags(cmd *cobra.Command) {
	o.flags(cmd)
	f := cmd.Flags().Lookup("write-out")
	f.Value.(*formatFlag).rows = true //nolint:forcetypeassert // of flags
	f.Usage = "output format: " + strings.Join(render.RowFormats(), "|")
}

// fullFlag is for commands whose default text is one screen.
func (o *output) fullFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.opts.Full, "full", false, "show every finding, check and fact (default: one screen)")
}

// quietFlag is for commands with a verdict.
func (o *output) quietFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.opts.Quiet, "quiet", "q", false, "as text, print the verdict alone, on one line")
}

// digestsFlag adds the flag that leaves out the sha256 of the sources.
func digestsFlag(cmd *cobra.Command, leaveOut *bool) {
	cmd.Flags().BoolVar(leaveOut, "no-digests", false, "leave out the sha256 of the sources, which takes about as "+
		"long as the rest")
}

// secretFlag is separate from --values, because it shows data that gives access to the cluster.
func (o *output) secretFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.opts.Secrets, "unsafe-show-secrets", false, "show passwords, password hashes and tokens "+
		"in plain text")
}

func (o *output) renderOptions() render.Options {
	r := o.opts
	r.Width, r.Color, r.Columns = o.io.Width, o.io.Color(), o.io.OutTTY
	return r
}

type formatFlag struct {
	f *render.Format
	// rows is true for commands that list rows.
	rows bool
}

// String returns the format that is set; pflag also calls it on a zero value.
func (v *formatFlag) String() string {
	if v.f == nil {
		return ""
	}
	return string(*v.f)
}

// Type names the flag's argument in the help.
func (v *formatFlag) Type() string { return "format" }

// words are the formats that a completion suggests.
func (v *formatFlag) words() []string {
	if v.rows {
		return render.RowFormats()
	}
	return render.Formats()
}

// Set accepts every format of render; plain only for commands that list rows.
func (v *formatFlag) Set(s string) error {
	if v.rows && s == string(render.Plain) {
		*v.f = render.Plain
		return nil
	}
	f, err := render.ParseFormat(s)
	if err == nil {
		*v.f = f
	}
	return err
}
