package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/repair/surgery"
	"github.com/etcd-medic/etcd-medic/shell"
)

// surgeryOptions are the common options of wal, db and meta.
type surgeryOptions struct {
	output
	sources
	out    string
	with   []string
	accept map[string]*bool
}

const surgeryRules = `

The source is only read. The result is a new path of the same kind, in which everything else is unchanged. Source and
result are diagnosed, with the other members named by --with. The loss is reported. The change is refused, and no result
remains, in two cases: the cluster may rely on the lost data, or the second diagnosis, which replays the log on the
database, finds an error that the first did not. The message then names the flag that accepts this.

Exit codes: 0 done, 1 could not read or write, 2 wrong usage, 5 refused, 6 the result is written, but no error of the
source was repaired.`

// surgeryCmd returns the command of one such repair. consequences are its flags that accept a consequence.
func surgeryCmd(s *Streams, o *surgeryOptions, cmd *cobra.Command, consequences map[string]string,
	run func(context.Context) error) *cobra.Command {
	o.output.io, o.accept = s, map[string]*bool{}
	cmd.Long += surgeryRules
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.parse(args); err != nil {
			return err
		}
		if o.out == "" {
			return usagef("-o NEW", "the new path is missing")
		}
		return run(cmd.Context())
	}
	o.output.flags(cmd)
	o.sources.flags(cmd)
	o.accessFlags(cmd)
	f := cmd.Flags()
	f.StringVarP(&o.out, "output", "o", "", "the new path; must not exist")
	f.StringArrayVar(&o.with, "with", nil, "another member to compare the result with; repeatable")
	for name, usage := range consequences {
		o.accept[name] = f.Bool(name, false, usage)
	}
	return cmd
}

var consequenceTexts = map[string]string{
	surgery.AcceptLostCommits:   "accept the loss of entries that may be committed by this member's vote",
	surgery.AcceptLostRevisions: "accept lost records, or records that cannot be proven complete",
	surgery.AcceptUnproven:      "keep entries whose checksum fails unchanged",
	surgery.AcceptDivergence:    "accept a result that differs from the other members",
}

func consequences(names ...string) map[string]string {
	out := map[string]string{}
	for _, n := range names {
		out[n] = consequenceTexts[n]
	}
	return out
}

func runNarrow(ctx context.Context, o *surgeryOptions, c surgery.Change) error {
	opts := surgery.Options{Source: o.specs[0], Out: o.out, Compare: o.compareOptions(&o.sources)}
	for _, s := range o.with {
		spec, err := evidence.ParseSpec(s)
		if err != nil {
			return usagef("see etcd-medic help sources", "--with: %v", err)
		}
		opts.With = append(opts.With, spec)
	}
	for name, on := range o.accept {
		if *on {
			opts.Accept = append(opts.Accept, name)
		}
	}
	o.io.heldSources(append(slices.Clone(o.specs), opts.With...))
	r, err := surgery.Run(ctx, opts, c)
	o.io.clearStatus()
	if err != nil {
		return err
	}
	if err := render.Document(o.io.Out, o.format, r, surgerySheet(r, o.out), o.renderOptions()); err != nil {
		return err
	}
	if r.Unchanged {
		return result(ExitUnfinished)
	}
	return nil
}

func surgerySheet(r *surgery.Report, out string) render.Sheet {
	head := render.Section{Pairs: [][2]string{
		{"source", string(r.Kind) + " " + r.Source},
		{"result", out},
		{"before", string(r.Before.Class) + ": " + r.Before.Summary},
		{"after", string(r.After.Class) + ": " + r.After.Summary},
	}}
	gives := r.GivesUp
	if len(gives) == 0 {
		gives = []string{"nothing"}
	}
	left := render.Section{Title: "still found in the result"}
	for _, f := range r.After.Findings {
		left.Lines = append(left.Lines, "- "+string(f.Check)+" "+string(f.Severity)+": "+f.Title)
	}
	sections := []render.Section{head, {Title: "did", Lines: dashed(r.Did)}, {Title: "gives up", Lines: dashed(gives)}}
	if len(r.Notes) > 0 {
		sections = append(sections, render.Section{Title: "mind", Lines: dashed(r.Notes)})
	}
	if len(left.Lines) > 0 {
		sections = append(sections, left)
	}
	if r.Unchanged {
		lines := []string{"- no error of the source was repaired: the result is as damaged as the source"}
		sections = append(sections, render.Section{Title: "not cured", Lines: append(lines, dashed(r.Offers)...)})
	}
	return render.Sheet{Sections: append(sections,
		render.Section{Title: "next", Lines: []string{"look at the result before it goes anywhere:"},
			Commands: render.Prompts(shell.Format("etcd-medic inspect {}", shell.Operand(out)))})}
}

const repairWALLong = `Repair a damaged log: torn tails, zeroed parts, damaged types and lengths, broken chains and
missing segments. Records that their checksums prove are kept in their order, under a new checksum chain from the first
damaged segment on. Lost entries are taken from the logs of the members named by --with, if those know them to be
committed. If no member has them, the log ends.`

const repairWALExample = `  etcd-medic repair wal /copies/node1 -o /new/node1
  etcd-medic repair wal node1=/copies/node1 --with node2=/copies/node2 --with node3=/copies/node3 -o /new/node1`

func newRepairWALCmd(s *Streams) *cobra.Command {
	o := &surgeryOptions{}
	cmd := &cobra.Command{Use: "wal SOURCE -o NEW", Short: "cut, re-chain or complete a damaged log",
		Long: repairWALLong, Example: repairWALExample}
	return surgeryCmd(s, o, cmd, consequences(surgery.AcceptLostCommits, surgery.AcceptUnproven,
		surgery.AcceptDivergence),
		func(ctx context.Context) error {
			return runNarrow(ctx, o, surgery.WAL{})
		})
}

const repairDBLong = `Repair a damaged database.

--rebuild writes a new file from every row that can be read: from the tree, from lost pages if damage removed their
records from the tree, and small buckets from the previous transaction if the newest is unreadable. Records that are in
no page are taken from the databases of the members named by --with, or from a replay of the log. A database that is
empty, missing or without a consistent index is created again: by executing the member's log, on --base or from the
first entry, or from a member named by --with whose index is within the log. --take-proven also replaces rows that are
readable but differ from those of a member that the diagnosis calls best. Where that is the source itself, it replaces
only the records that are proven wrong, one by one, by those of members that hold the right ones.

--previous-meta goes back one transaction, which bbolt keeps until its pages are used again. The server applies the
undone entries again from its log.`

const repairDBExample = `  etcd-medic repair db /copies/node1 --rebuild -o /new/node1
  etcd-medic repair db backup.db --rebuild -o whole.db
  etcd-medic repair db /copies/node1 --previous-meta -o /new/node1`

func newRepairDBCmd(s *Streams) *cobra.Command {
	o := &surgeryOptions{}
	var again, back, proven bool
	var base string
	cmd := &cobra.Command{Use: "db SOURCE -o NEW", Short: "rebuild a damaged database, or go back one transaction",
		Long: repairDBLong, Example: repairDBExample}
	surgeryCmd(s, o, cmd, consequences(surgery.AcceptLostRevisions, surgery.AcceptDivergence),
		func(ctx context.Context) error {
			if again == back {
				return usagef("--rebuild or --previous-meta", "say how to repair the database")
			}
			if proven && !again {
				return usagef("--rebuild --take-proven", "--take-proven goes with --rebuild")
			}
			c := surgery.DB{Previous: back, Proven: proven}
			if base != "" {
				var err error
				if c.Base, err = evidence.ParseSpec(base); err != nil {
					return usagef("see etcd-medic help sources", "--base: %v", err)
				}
			}
			return runNarrow(ctx, o, c)
		})
	cmd.Flags().StringVar(&base, "base", "", "backup of the cluster to replay the log from; without it, from the "+
		"log's first entry")
	cmd.Flags().BoolVar(&again, "rebuild", false, "write a new database from all rows that can be read")
	cmd.Flags().BoolVar(&proven, "take-proven", false, "with --rebuild: where rows differ, take those of --with "+
		"members that are proven right")
	cmd.Flags().BoolVar(&back, "previous-meta", false, "make the transaction before the newest one")
	return cmd
}

const repairMetaLong = `Change control values of a member: the consistent index (with its term), the auth revision, the
storage version, the member list and the ConfState as raft itself has them, alarms, and v2 keys that keep etcd 3.6 from
starting. Several can be given together.`

const repairMetaExample = `  etcd-medic repair meta /copies/node1 --set-consistent-index 1043 -o /new/node1
  etcd-medic repair meta node1=/copies/node1 --with node2=/copies/node2 --set-auth-revision 12 -o /new/node1
  etcd-medic repair meta /copies/node1 --members-from-raft --confstate-from-raft -o /new/node1
  etcd-medic repair meta /copies/node1 --clear-alarm 8e9e05c52164694d:CORRUPT -o /new/node1`

func newRepairMetaCmd(s *Streams) *cobra.Command {
	o := &surgeryOptions{}
	var c surgery.Meta
	var index, auth uint64
	var storage string
	var alarms []string
	cmd := &cobra.Command{Use: "meta SOURCE -o NEW", Short: "change control values of a member", Long: repairMetaLong,
		Example: repairMetaExample}
	f := cmd.Flags()
	surgeryCmd(s, o, cmd, consequences(surgery.AcceptDivergence), func(ctx context.Context) error {
		if f.Changed("set-consistent-index") {
			c.ConsistentIndex = &index
		}
		if f.Changed("set-auth-revision") {
			c.AuthRevision = &auth
		}
		if f.Changed("set-storage-version") {
			c.StorageVersion = &storage
		}
		for _, a := range alarms {
			ref, err := surgery.ParseAlarm(a)
			if err != nil {
				return usagef("MEMBER-ID or MEMBER-ID:CORRUPT", "--clear-alarm: %v", err)
			}
			c.ClearAlarms = append(c.ClearAlarms, ref)
		}
		return runNarrow(ctx, o, c)
	})
	f.Uint64Var(&index, "set-consistent-index", 0, "set meta/consistent_index, and meta/term to match")
	f.Uint64Var(&auth, "set-auth-revision", 0, "set auth/authRevision")
	f.StringVar(&storage, "set-storage-version", "", "set meta/storageVersion (3.6.0 and later; empty removes it)")
	f.BoolVar(&c.MembersFromRaft, "members-from-raft", false, "make buckets members and members_removed agree with "+
		"raft's own list")
	f.BoolVar(&c.ConfStateFromRaft, "confstate-from-raft", false, "make meta/confState agree with raft's own list")
	f.StringArrayVar(&alarms, "clear-alarm", nil,
		"clear the alarms of MEMBER-ID, or one kind: MEMBER-ID:NOSPACE; repeatable")
	f.BoolVar(&c.DropV2, "drop-v2-keys", false, "remove the v2 keys of users from the .snap files")
	return cmd
}
