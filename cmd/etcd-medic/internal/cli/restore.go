package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/repair/restore"
)

type restoreOptions struct {
	output
	sources
	out, plan, cluster, token, dataDir string
	surviving, logDirs                 []string
	bump                               string
	reserve                            uint64
	markCompacted                      bool
	unproven, broken, alarmed, low     bool
}

const restoreLong = `Write the data dirs of a whole cluster from one backup, all at once: the members are named once,
IDs follow from that, the member list in the database, the raft snapshot and the log agree, and the token is new. The
backup is verified layer by layer first, and the new dirs are diagnosed together before the result counts. Backups of
etcd 3.3 to 3.8 can be restored.

BACKUP may be a data dir: its committed log entries above the database's consistent index are executed first, as extract
does. Entries that are not proven committed, or cannot be executed, are counted, and the exit code is 4.
It is 4, too, if the log is missing or has lost its end.

The members come from --initial-cluster or from a plan file; with neither, from the backup. A plan file is YAML:

  token: new-token              # optional
  dataDir: /var/lib/etcd        # optional, for the start commands; {name} stands for the member
  members:
    - name: node1
      peerURLs: [https://10.0.0.1:2380]
      clientURLs: [https://10.0.0.1:2379]     # optional, for the start commands

The revision is raised above the newest one that any --surviving source shows or may have acknowledged, plus
--bump-reserve, and everything older is marked compacted. Clients that saw newer revisions then read again instead of
missing events. Without --surviving it is raised by 1000000000. --bump-revision N sets the raise, 0 leaves the revision
unchanged.

Without --initial-cluster-token the token is made from the backup and the revision it starts at. So the same flags give
the same member and cluster IDs on every host, as with etcdutl. This is right for the hosts of one new cluster and wrong
for a second cluster from the same backup. The second one needs a separate token and revisions above those of the first
(--surviving). The result says what was used.

The result is in the folder given with -o: one data dir per member, next to the command that starts it. If it could not
be written, nothing is left there.

Exit codes: 0 restored, 1 could not read or write, 2 wrong usage, 4 the data dir's log holds more than the new cluster,
5 refused: nothing was written, 6 the new dirs did not pass their diagnosis.`

const restoreExample = `  etcd-medic restore backup.db -o new --initial-cluster n1=http://10.0.0.1:2380,n2=http://10.0.0.2:2380,n3=http://10.0.0.3:2380
  etcd-medic restore backup.db -o new --plan cluster.yaml --surviving /copies/node1 --surviving /copies/node2
  etcd-medic restore backup.db -o new --plan cluster.yaml -w json | jq -r '.members[].start'`

func newRestoreCmd(s *Streams, run func(context.Context, *restoreOptions) error) *cobra.Command {
	o := &restoreOptions{output: output{io: s}}
	cmd := &cobra.Command{
		Use:     "restore BACKUP -o DIR",
		Short:   "write the data dirs of a whole cluster from one backup",
		Long:    restoreLong,
		Example: restoreExample,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	o.output.flags(cmd)
	o.accessFlags(cmd)
	f := cmd.Flags()
	f.StringVarP(&o.out, "output", "o", "", "new folder for the data dirs; must not exist")
	f.StringVar(&o.plan, "plan", "", "file that names token and members (YAML)")
	f.StringVar(&o.cluster, "initial-cluster", "", "the members, as NAME=PEER-URL,NAME=PEER-URL")
	f.StringVar(&o.token, "initial-cluster-token", "",
		"cluster token (default: a new one, made from backup and revision)")
	f.StringVar(&o.dataDir, "data-dir", "", "where a member's dir will be on its host, for the start commands; "+
		"{name} stands for its name (default: where it is written)")
	f.StringArrayVar(&o.surviving, "surviving", nil,
		"source of the old cluster that shows how far it had come; repeatable")
	f.StringArrayVar(&o.logDirs, "log", nil, "of a data dir: data dir or WAL folder of another member, whose log "+
		"proves more entries committed; repeatable")
	f.StringVar(&o.bump, "bump-revision", "auto", "raise the revision by this number")
	f.Uint64Var(&o.reserve, "bump-reserve", restore.DefaultReserve, "how much to raise beyond the newest revision seen")
	f.BoolVar(&o.markCompacted, "mark-compacted", true, "mark everything up to the raised revision compacted; goes "+
		"with raising")
	f.BoolVar(&o.unproven, "accept-unproven-content", false,
		"restore although the sha256 trailer is missing or does not fit")
	f.BoolVar(&o.broken, "accept-contradicting-content", false, "restore although the content contradicts itself")
	f.BoolVar(&o.alarmed, "accept-content-flagged-corrupt", false, "restore although the backup holds a CORRUPT alarm")
	f.BoolVar(&o.low, "accept-revisions-already-seen", false, "start at a revision that clients have seen already")
	return cmd
}

// options turns the flags into the options of restore.
func (o *restoreOptions) options() (restore.Options, error) {
	r := restore.Options{Backup: o.specs[0], Out: o.out, Reserve: o.reserve, Unproven: o.unproven, Broken: o.broken,
		Alarmed:     o.alarmed,
		LowRevision: o.low, Compare: o.compareOptions(&o.sources)}
	if o.out == "" {
		return r, usagef("-o DIR", "the new folder is missing")
	}
	if o.plan != "" && o.cluster != "" {
		return r, usagef("", "--plan and --initial-cluster both name the members")
	}
	var err error
	if o.plan != "" {
		if r.Plan, err = restore.ReadPlan(o.plan); err != nil {
			return r, usagef("see etcd-medic restore --help", "%v", err)
		}
	}
	if o.cluster != "" {
		if r.Plan.Members, err = restore.ParseInitialCluster(o.cluster); err != nil {
			return r, usagef("NAME=PEER-URL,NAME=PEER-URL", "--initial-cluster: %v", err)
		}
	}
	if o.token != "" {
		r.Plan.Token = o.token
	}
	if o.dataDir != "" {
		r.Plan.DataDir = o.dataDir
	}
	for _, s := range o.surviving {
		spec, err := evidence.ParseSpec(s)
		if err != nil {
			return r, usagef("see etcd-medic help sources", "--surviving: %v", err)
		}
		r.Surviving = append(r.Surviving, spec)
	}
	if r.Logs, err = parseSpecs("--log", o.logDirs); err != nil {
		return r, err
	}
	return r, o.raise(&r)
}

func (o *restoreOptions) raise(r *restore.Options) error {
	if o.bump != "auto" {
		n, err := strconv.ParseUint(o.bump, 10, 63)
		if err != nil {
			return usagef("a number, or auto", "--bump-revision %q", o.bump)
		}
		r.Bump = &n
	}
	if !o.markCompacted && (r.Bump == nil || *r.Bump > 0) {
		return usagef("--bump-revision 0", "a raised revision has to be marked compacted: the gap would pass for "+
			"history")
	}
	return nil
}

func runRestore(ctx context.Context, o *restoreOptions) error {
	opts, err := o.options()
	if err != nil {
		return err
	}
	o.io.heldSources(append(append(slices.Clone(o.specs), opts.Logs...), opts.Surviving...))
	r, err := restore.Run(ctx, opts)
	o.io.clearStatus()
	var bad *restore.NotHealthyError
	if err != nil && !errors.As(err, &bad) {
		return err
	}
	if err := render.Document(o.io.Out, o.format, r, restoreSheet(r, o.out), o.renderOptions()); err != nil {
		return err
	}
	switch {
	case bad != nil:
		return result(ExitUnfinished)
	case r.Behind():
		return result(ExitInconclusive)
	}
	return nil
}

func restoreSheet(r *restore.Report, out string) render.Sheet {
	head := render.Section{Pairs: [][2]string{
		{"backup", fmt.Sprintf("%s, revision %d, sha256 trailer: %s", r.Backup.Name, r.Backup.Revision,
			r.Backup.Trailer)},
		{"cluster", fmt.Sprintf("%s, token %s%s", r.ClusterID, r.Token, made(r.TokenGiven))},
		{"revision", revisionText(&r.Revision)},
		{"servers", r.Servers},
		{"diagnosis", string(r.After.Class) + ": " + r.After.Summary},
	}}
	members := render.Section{Title: "members", Head: []string{"name", "ID", "peer URLs", "data dir"}}
	start := render.Section{Title: "start", Lines: []string{"all together, with the TLS and tuning flags of the " +
		"installation added:"}}
	for i := range r.Members {
		m := &r.Members[i]
		members.Rows = append(members.Rows, []string{m.Name, m.MemberID.String(), strings.Join(m.PeerURLs, " "),
			out + "/" + m.Name})
		start.Commands = append(start.Commands, render.Command{Prefix: "$ ", Run: m.StartArgs})
	}
	sections := []render.Section{head, members, {Title: "gives up", Lines: dashed(r.GivesUp)}}
	if len(r.Warnings) > 0 {
		sections = append(sections, render.Section{Title: "warnings", Lines: dashed(r.Warnings)})
	}
	return render.Sheet{Sections: append(sections, render.Section{Title: "mind", Lines: dashed(r.Notes)}, start)}
}

func made(given bool) string {
	if given {
		return ""
	}
	return " (made from the backup)"
}

func revisionText(v *restore.Revision) string {
	s := fmt.Sprintf("starts at %d, raised by %d", v.Start, v.Bump)
	if v.SeenOn != "" {
		s += fmt.Sprintf("; the newest that survived is %d, on %s", v.NewestSeen, v.SeenOn)
	}
	return s
}
