package cli

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
)

type explainOptions struct {
	io   *Streams
	code string
}

const explainLong = `Explain a check (A01), a finding (A01-2) or a cause (auth-revision-replay): what must hold, why it matters, when it is
normal, which etcd versions are affected. Without CODE all checks and causes are listed.

Exit codes: 0 done, 2 no such code.`

func newExplainCmd(s *Streams, run func(context.Context, *explainOptions) error) *cobra.Command {
	o := &explainOptions{io: s}
	return &cobra.Command{
		Use:     "explain [CODE]",
		Short:   "explain a check or a cause",
		Long:    explainLong,
		Example: "  etcd-medic explain\n  etcd-medic explain A01\n  etcd-medic explain auth-revision-replay",
		Args:    cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return codes(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.code = args[0]
			}
			return run(cmd.Context(), o)
		},
	}
}

func runExplain(_ context.Context, o *explainOptions) error {
	opts := render.Options{Width: o.io.Width, Color: o.io.Color()}
	if o.code == "" {
		return render.Catalogue(o.io.Out, check.All(), cause.All(), cause.Undetected(), opts)
	}
	id, _, _ := strings.Cut(o.code, "-")
	for _, c := range check.All() {
		if strings.EqualFold(c.ID, o.code) || strings.EqualFold(c.ID, id) {
			return render.Check(o.io.Out, c, opts)
		}
	}
	for _, c := range cause.All() {
		if strings.EqualFold(c.ID, o.code) {
			return render.CauseDoc(o.io.Out, c, opts)
		}
	}
	for _, k := range cause.Undetected() {
		if strings.EqualFold(k.ID, o.code) {
			return render.KnownDoc(o.io.Out, k, opts)
		}
	}
	return usagef(nearCodes(o.code), "%q is no check and no cause", o.code)
}

func codes() []string {
	var out []string
	for _, c := range check.All() {
		out = append(out, c.ID)
	}
	for _, c := range cause.All() {
		out = append(out, c.ID)
	}
	for _, k := range cause.Undetected() {
		out = append(out, k.ID)
	}
	return out
}

// nearCodes suggests codes that share words with what was asked.
func nearCodes(code string) string {
	var near []string
	for _, c := range codes() {
		for w := range strings.FieldsFuncSeq(strings.ToLower(code), func(r rune) bool { return r == '-' || r == ' ' || r == '_' }) {
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
	return fmt.Sprintf("near it: %s", strings.Join(near, ", "))
}
