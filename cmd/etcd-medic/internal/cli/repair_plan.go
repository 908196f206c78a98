package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/internal/sshsig"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/try"
)

type repairPlanOptions struct {
	output
	sources
	file          string
	best          string
	gone, replace []string
	scratch       string
	signWith      string
	// standby are the values of --standby, standbys their parsed form.
	standby  []string
	standbys []plan.Standby
}

const repairPlanLong = `Diagnose the sources and write a plan. The plan names the member whose content is kept and why,
the data that is lost and the command that saves it, and the procedure. It lists every step with its precondition, its
effect, how to undo it, how to see that it is done, and the commands for doing it manually. The plan is bound to the
digests of the sources. Its own digest is an integrity check, not a signature: it shows that the plan was changed, not
who made it. --sign-with KEY signs the file with a private SSH key, into FILE.sig. rehearse and apply check that with
--verify-with, as ssh-keygen -Y verify -n etcd-medic-plan does.

If a server refuses a data dir, the plan first tries on a scratch copy whether its files can be repaired: from its own
log and pages, then with the help of the other members. If this works without loss, it is recommended when a majority is
missing, and listed otherwise.

Procedures:
  mend               repair wal and repair db of damaged data dirs, IDs and data kept
  live               through the running cluster's client API, one member at a time
  clone              new data dirs for all members, IDs kept
  reseed             the data dirs of a rehearsal
  force-new-cluster  no majority is left
  rebuild            no data dir is usable, and the database is rebuilt from their logs
  restore            from a backup
  rehearse-only      nothing to apply yet: data dirs or evidence are missing

No plan is made for healthy and lagging sets. If members are equally good with different contents, --best must say which
one to keep. Sources of several clusters need --best too: the others then join its cluster. So do members that were
restored from different backups. New data dirs for all members and a forced start give up voters that are not among the
sources. Until those are given, or named with --lost, such a plan can only be rehearsed, and says what it needs.

--standby NAME=PEER_URL gives a member that is replaced a successor on another host. It joins as a learner and is
promoted when it has caught up. Only then the old member is removed, so the cluster never has fewer voters. At the old
peer URL, etcd allows no new member before the old one is removed.

A data dir belongs to the member whose ID its log carries. The data dir of a removed member is retired; --replace NAME
brings the member back, empty and under a new ID. If there are two copies of one member, the better one counts. Rows of
bucket members that raft does not know are never removed through servers of etcd 3.6, because those servers panic. Up to
3.5 a restart drops the rows, on 3.6 clone does.

Exit codes: 0 the plan was written, 1 could not read, 2 wrong usage, 5 refused: nothing to repair, not enough evidence,
or a choice is needed.`

const repairPlanExample = `  etcd-medic repair plan node1=/copies/node1 node2=/copies/node2 node3=/copies/node3 -o plan.yaml
  etcd-medic repair plan /copies -o plan.yaml --best node2
  etcd-medic repair plan node1=/copies/node1 -o plan.yaml --lost node2 --lost node3
  etcd-medic repair plan /copies -o plan.yaml -w json | jq .ways`

func newRepairPlanCmd(s *Streams, run func(context.Context, *repairPlanOptions) error) *cobra.Command {
	o := &repairPlanOptions{output: output{io: s}}
	cmd := &cobra.Command{
		Use:     "plan SOURCE... -o FILE",
		Short:   "write a plan of what to do, and why",
		Long:    repairPlanLong,
		Example: repairPlanExample,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parseFiles(cmd, args); err != nil {
				return err
			}
			if o.file == "" {
				return usagef("-o plan.yaml", "the file for the plan is missing")
			}
			for _, text := range o.standby {
				s, err := plan.ParseStandby(text)
				if err != nil {
					return usagef("", "--standby: %v", err)
				}
				o.standbys = append(o.standbys, s)
			}
			return run(cmd.Context(), o)
		},
	}
	o.output.flags(cmd)
	o.fullFlag(cmd)
	o.sources.flags(cmd)
	cmd.Flags().StringVarP(&o.file, "output", "o", "", "file for the plan (YAML); must not exist")
	cmd.Flags().StringVar(&o.best, "best", "", "keep the content of this member (source name, server name or ID)")
	cmd.Flags().StringVar(&o.signWith, "sign-with", "", "sign the plan with this private SSH key, into FILE.sig")
	cmd.Flags().StringArrayVar(&o.gone, "lost", nil, "the data dir of this member is lost for good; repeatable")
	cmd.Flags().StringVar(&o.scratch, "scratch", "", "folder for copies of damaged data dirs, on which repairs are "+
		"tried (default: the system's folder for temporary files)")
	cmd.Flags().StringArrayVar(&o.standby, "standby", nil, "[OLD:]NAME=PEER_URL of a new member on another host that "+
		"takes the place of one that is replaced: it is promoted before that is removed; repeatable")
	cmd.Flags().StringArrayVar(&o.replace, "replace", nil, "reseed this member although nothing is wrong with it, or "+
		"bring a removed one back; repeatable")
	return cmd
}

func runRepairPlan(ctx context.Context, o *repairPlanOptions) error {
	if err := datadir.Outside(o.file, o.specs...); err != nil {
		return err
	}
	var signer *sshsig.Signer
	if o.signWith != "" { // before the work: a key that is of no use is said at once
		var err error
		if signer, err = plan.Signer(o.signWith, o.file); err != nil {
			return err
		}
	}
	o.io.heldSources(o.specs)
	p, err := plan.New(ctx, o.specs, try.In(o.scratch), plan.Options{Compare: o.compareOptions(&o.sources),
		Best: o.best, Gone: o.gone, Replace: o.replace, Standby: o.standbys})
	o.io.clearStatus()
	if err != nil {
		return err
	}
	if signer == nil {
		err = p.Save(o.file)
	} else {
		err = p.SaveSigned(o.file, signer)
	}
	if err != nil {
		return err
	}
	return render.Reply(o.io.Out, o.format, p, planAnswer(p, o.file), planSheet(p, o.file), o.renderOptions())
}

// planSheet is the plan in short; the file has the rest.
func planSheet(p *plan.Plan, file string) render.Sheet {
	head := render.Section{Pairs: [][2]string{
		{"verdict", string(p.Verdict.Class) + ": " + p.Verdict.Summary},
		{"way", string(p.Mode) + ": " + p.Why},
		{"keep", keepText(p)},
		{"given up", p.GivenUp()},
	}}
	if x := p.Missing; x != nil {
		head.Pairs = append(head.Pairs, [2]string{"needs", x.Text()})
	}
	if takes := costText(p.Shown()); takes != "" {
		head.Pairs = append(head.Pairs, [2]string{"takes", takes})
	}
	s := render.Sheet{Sections: []render.Section{head, memberSection(p), reasons(p)}}
	if p.Lost.Mend != "" {
		s.Sections = append(s.Sections, render.Section{Title: "mend first",
			Commands: render.Prompts(p.Lost.MendArgs)})
	}
	if len(p.Lost.Save) > 0 {
		s.Sections = append(s.Sections, render.Section{Title: "save first",
			Commands: render.Prompts(p.Lost.SaveArgs...)})
	}
	if len(p.Cautions) > 0 {
		s.Sections = append(s.Sections, render.Section{Title: "mind", Lines: dashed(p.Cautions)})
	}
	if w := p.Shown(); w != nil {
		sec := render.Section{Title: "steps"}
		for i := range w.Steps {
			sec.Lines = append(sec.Lines, fmt.Sprintf("%2d. %s", i+1, w.Steps[i].Title))
		}
		s.Sections = append(s.Sections, sec)
	}
	if len(p.OtherWays()) > 0 {
		s.Sections = append(s.Sections, otherWays(p))
	}
	s.Sections = append(s.Sections, nextOfPlan(p, file))
	return s
}

// nextOfPlan says what to type now.
func nextOfPlan(p *plan.Plan, file string) render.Section {
	says := "read " + file + ", then try it on scratch copies:"
	switch {
	case p.Missing != nil && p.Tried() == "":
		says = "give what is missing, or give it up; only then restore:"
	case p.Missing != nil:
		says = "give what is missing, or give it up; this plan can be tried on scratch copies:"
	case p.Tried() == "":
		says = "read " + file + ", then restore:"
	}
	return render.Section{Title: "next", Lines: []string{says}, Commands: render.Prompts(p.FirstCommands(file)...)}
}

// costText is the estimate of room and time, "" where there is none.
func costText(w *plan.Way) string {
	if w == nil || w.Cost == nil {
		return ""
	}
	where := "free in the output and scratch folders"
	if w.Mode == plan.Live {
		where = "free on the host of each member that is replaced"
	}
	return fmt.Sprintf("about %s; %s are copied, %s must be %s", (time.Duration(w.Cost.Seconds) * time.Second).String(),
		plural.Size(w.Cost.CopyBytes), plural.SizeUp(w.Cost.FreeBytes), where)
}

func keepText(p *plan.Plan) string {
	if p.Best.Name == "" {
		return "no member"
	}
	return fmt.Sprintf("%s (%s), revision %d: %s", p.Best.Name, p.Best.ID, p.Best.Revision,
		cmp.Or(p.Best.For, p.Best.Why))
}

func memberSection(p *plan.Plan) render.Section {
	s := render.Section{Title: "members", Head: []string{"name", "ID", "what is done", "revision", "lacks"}}
	for i := range p.Members {
		m := &p.Members[i]
		s.Rows = append(s.Rows, []string{m.Name, m.ID.String(), string(m.Action), number(m.Revision),
			number(int64(m.Lacks))})
	}
	return s
}

// reasons says of every member but the best one why that is done to it; members with one reason share a line.
func reasons(p *plan.Plan) render.Section {
	s := render.Section{Title: "why"}
	var order []string
	who := map[string][]string{}
	for i := range p.Members {
		m := &p.Members[i]
		if m.Action == plan.Best {
			continue
		}
		k := string(m.Action) + ": " + m.Why
		if who[k] == nil {
			order = append(order, k)
		}
		who[k] = append(who[k], m.Name)
	}
	for _, k := range order {
		s.Lines = append(s.Lines, "- "+strings.Join(who[k], ", ")+", "+k)
	}
	return s
}

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func otherWays(p *plan.Plan) render.Section {
	s := render.Section{Title: "other ways"}
	for _, w := range p.OtherWays() {
		line := string(w.Mode) + ": " + w.Why
		if !w.Possible {
			line = "not " + line
		}
		if c := costText(w); c != "" {
			line += " (" + c + ")"
		}
		s.Lines = append(s.Lines, line)
	}
	return s
}

func dashed(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = "- " + l
	}
	return out
}
