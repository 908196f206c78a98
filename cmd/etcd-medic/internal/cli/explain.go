package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/explain"
	"github.com/etcd-medic/etcd-medic/compare/preflight"
	"github.com/etcd-medic/etcd-medic/compare/serverlog"
)

type explainOptions struct {
	output
	sources
	ask     string
	on      []string
	to      string
	version preflight.Version
}

const explainLong = `Explain a check (A01), a finding (A01-2), a cause (auth-revision-replay), a rule of preflight
(P10), or what an etcd server wrote: a panic, fatal or error line, quoted, or a whole log on stdin with "-". Of a line
it says what it means, which state on disk makes a server write it, which causes lead there, what to check and what to
do.

With sources (after the code, or with --on) it diagnoses them and shows what they say about it: the outcome of the
checks, the findings, the causes that fit, and the rules of preflight.

Without an argument all checks and causes are listed.

Exit codes: 0 done, 1 could not read, 2 no such code or text, 4 nothing on stdin is known, or a source could not be
used.`

const explainExample = `  etcd-medic explain
  etcd-medic explain A01
  etcd-medic explain auth-revision-replay node1/ node2/ node3/
  etcd-medic explain 'tocommit(1043) is out of range [lastIndex(0)]' --on node1=/copies/node1
  journalctl -u etcd | etcd-medic explain -`

func newExplainCmd(s *Streams, run func(context.Context, *explainOptions) error) *cobra.Command {
	o := &explainOptions{output: output{io: s}}
	cmd := &cobra.Command{
		Use:     "explain [CODE|TEXT|-] [SOURCE...]",
		Short:   "explain a check, a cause, or a line of a server's log",
		Long:    explainLong,
		Example: explainExample,
		Args:    cobra.ArbitraryArgs,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return codes(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.ask = args[0]
				args = args[1:]
			}
			if err := o.parse(append(args, o.on...)); err != nil {
				return err
			}
			if o.ask == "" && len(o.specs) > 0 {
				return usagef("see etcd-medic explain --help", "--on needs a code or text to explain")
			}
			if o.to == "" {
				return run(cmd.Context(), o)
			}
			var err error
			if o.version, err = preflight.ParseVersion(o.to); err != nil {
				return usagef("", "--to: %v", err)
			}
			return run(cmd.Context(), o)
		},
	}
	o.output.flags(cmd)
	o.sources.flags(cmd)
	o.accessFlags(cmd)
	cmd.Flags().StringArrayVar(&o.on, "on", nil, "show what this source says about it; repeatable")
	cmd.Flags().StringVar(&o.to, "to", "", "for rules of preflight: the etcd version that shall open the sources "+
		"(default: the line that wrote them)")
	return cmd
}

func runExplain(ctx context.Context, o *explainOptions) error {
	if o.ask == "" && o.format == render.Table {
		return render.Catalogue(o.io.Out, check.All(), cause.All(), cause.Undetected(), preflight.Rules(),
			o.renderOptions())
	}
	a := &explain.Answer{SchemaVersion: compare.SchemaVersion,
		Tool: compare.Tool{Name: "etcd-medic", Version: Version()}}
	var err error
	if a.Topics, err = o.topics(ctx); err != nil {
		return err
	}
	if len(o.specs) > 0 {
		a.On, err = explain.Look(ctx, a.Topics, o.specs,
			explain.Options{Options: o.compareOptions(&o.sources), To: o.version})
		o.io.clearStatus()
		var none *explain.NoFindingError
		if errors.As(err, &none) {
			return usagef("etcd-medic diagnose --full lists the findings", "%v", err)
		}
		if err != nil {
			return err
		}
	}
	if err := render.Explanation(o.io.Out, o.format, a, o.renderOptions()); err != nil {
		return err
	}
	return result(o.explainCode(a))
}

// explainCode returns the exit code: an explanation is not a finding. A source that cannot be used, or
// that changed while it was read, leaves the answer open.
func (o *explainOptions) explainCode(a *explain.Answer) int {
	if a.On == nil {
		return ExitDone
	}
	o.io.unusable(a.On.Sources)
	if !a.On.InputsUnchanged {
		o.io.warnf("a source changed while it was read: nothing that is shown of it can be trusted; copy the stopped " +
			"member's data dir and run again")
		return ExitInconclusive
	}
	for i := range a.On.Sources {
		if a.On.Sources[i].Error != "" {
			return ExitInconclusive
		}
	}
	return ExitDone
}

// topics finds the requested topics: first a code, then messages in the text.
func (o *explainOptions) topics(ctx context.Context) ([]explain.Topic, error) {
	switch o.ask {
	case "":
		var all []explain.Topic
		for _, c := range codes() {
			if t, ok := explain.Code(c); ok {
				all = append(all, t)
			}
		}
		return all, nil
	case "-":
		return o.fromLog(ctx)
	}
	if t, ok := explain.Code(o.ask); ok {
		return []explain.Topic{t}, nil
	}
	if t := explain.Messages(serverlog.Scan(o.ask)); len(t) > 0 {
		return t, nil
	}
	return nil, usagef(nearCodes(o.ask), "%q is not a check, a cause or a message of etcd that is known", o.ask)
}

// longestPart bounds how much of a line is read at once; stack traces in JSON lines are shorter.
const longestPart = 1 << 20

// fromLog searches a log on stdin, in constant memory.
func (o *explainOptions) fromLog(ctx context.Context) ([]explain.Topic, error) {
	if o.io.Stdin == nil {
		return nil, errors.New("there is no stdin")
	}
	var s serverlog.Scanner
	text, err := unpackLog(o.io.Stdin)
	if err != nil {
		return nil, fmt.Errorf("stdin: %w", err)
	}
	r := bufio.NewReaderSize(text, longestPart)
	look := s.Line
	for n := 0; ; n++ {
		line, err := r.ReadSlice('\n')
		if len(line) > 0 {
			look(string(line))
		}
		if n%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			look = s.More
			continue
		}
		look = s.Line
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("stdin: %w", err)
		}
	}
	if t := explain.Messages(s.Matches()); len(t) > 0 {
		return t, nil
	}
	if s.Lines() == 1 {
		o.io.errorf("the one line on stdin holds no message that is known")
	} else {
		o.io.errorf("none of the %d lines on stdin holds a message that is known", s.Lines())
	}
	return nil, result(ExitInconclusive)
}

func codes() []string {
	var out []string
	for _, c := range check.All() {
		out = append(out, string(c.ID))
	}
	for _, c := range cause.All() {
		out = append(out, string(c.ID))
	}
	for _, k := range cause.Undetected() {
		out = append(out, string(k.ID))
	}
	for _, r := range preflight.Rules() {
		out = append(out, r.ID)
	}
	for _, m := range serverlog.All() {
		out = append(out, m.ID)
	}
	return out
}

// nearCodes suggests codes with a similar spelling, or else those with words in common.
func nearCodes(code string) string {
	if near := explain.Alike(code, codes()); len(near) > 0 {
		return "did you mean " + strings.Join(near, " or ") + "?"
	}
	var near []string
	for _, c := range codes() {
		for w := range strings.FieldsFuncSeq(strings.ToLower(code),
			func(r rune) bool { return r == '-' || r == ' ' || r == '_' }) {
			if len(w) > 2 && strings.Contains(strings.ToLower(c), w) {
				near = append(near, c)
				break
			}
		}
	}
	if len(near) == 0 {
		return "etcd-medic explain lists all of them"
	}
	sort.Strings(near)
	return fmt.Sprintf("near it: %s", strings.Join(near[:min(len(near), 10)], ", "))
}
