package restore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Options say what to restore and which risks to accept.
type Options struct {
	// Backup is a backup file, a db file, or a data dir, whose db is used.
	Backup evidence.Spec
	Plan   Plan
	// Out is the new folder for the members' dirs.
	Out string
	// Surviving are sources of the old cluster: data dirs, dbs, later backups, running members.
	Surviving []evidence.Spec
	// Logs are other members of the cluster. For a data dir, entries that their logs prove committed are executed too.
	Logs []evidence.Spec
	// Bump is how much the revision is raised; nil computes it, 0 keeps it. Reserve is added to a computed raise.
	Bump    *uint64
	Reserve uint64
	// Unproven accepts a missing or wrong trailer, Broken inconsistent content, Alarmed content that the old cluster
	// itself flagged as corrupt, LowRevision a start below revisions that clients have seen.
	Unproven, Broken, Alarmed, LowRevision bool
	// Compare are the options of the diagnoses before and after.
	Compare compare.Options
}

func refusef(hint, format string, args ...any) error {
	return refusal.New(hint, format, args...)
}

// Run restores. A *refusal.Error means that nothing was written. An error with a Report means that the dirs exist but
// did not pass their diagnosis.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Backup.Where == "" || evidence.IsEndpoint(o.Backup.Where) {
		save := shell.Format("etcdctl snapshot save <FILE>")
		if o.Backup.Where != "" {
			save = shell.Format("etcdctl --endpoints {} snapshot save <FILE>", o.Backup.Where)
		}
		return nil, refusef("save a snapshot first: "+save.String(), "a running member is not a backup")
	}
	if err := datadir.Outside(o.Out, slices.Concat([]evidence.Spec{o.Backup}, o.Surviving, o.Logs)...); err != nil {
		return nil, err
	}
	up, err := rebuild.CatchUp(ctx, rebuild.CatchUpOptions{Source: o.Backup, Logs: o.Logs, Access: o.Compare.Access,
		Progress: o.Compare.Progress})
	if err != nil {
		return nil, err
	}
	defer func() { _ = up.Close() }()
	parts := up.Parts
	if parts.DB == "" {
		return nil, &evidence.SourceError{Where: o.Backup.Where, Found: "a source of kind " + string(parts.Kind),
			Expected: "a backup"}
	}
	verified, err := backup.Verify(ctx, evidence.Spec{Name: parts.Name, Where: up.DB},
		backup.Options{Options: o.Compare})
	if err != nil {
		return nil, err
	}
	r := &Report{SchemaVersion: compare.SchemaVersion, Tool: verified.Tool, GivesUp: []string{}, Notes: []string{},
		Warnings: []string{}}
	if err := r.takeBackup(verified, parts.Kind, &o); err != nil {
		return nil, err
	}
	old, err := readSurvivors(ctx, &o, r.Backup.Revision)
	if err != nil {
		return nil, err
	}
	if r.Revision, err = revisionFor(r.Backup.Revision, old, &o); err != nil {
		return nil, err
	}
	dirs, err := r.plan(&o, verified, old)
	if err != nil {
		return nil, err
	}
	r.losses(verified, up)
	if err := r.write(ctx, &o, up.DB, dirs, parts.Unchanged); err != nil {
		return nil, err
	}
	r.InputsUnchanged = true // else nothing is written
	return r, r.verify(ctx, &o)
}

// onlyWarned reports whether all findings of these checks, at least one, are warnings.
func onlyWarned(v *compare.Report, checks []check.ID) bool {
	found := false
	for i := range v.Findings {
		f := &v.Findings[i]
		if !slices.Contains(checks, f.Check) {
			continue
		}
		if found = true; f.Severity.Rank() >= check.Error.Rank() {
			return false
		}
	}
	return found
}

// takeBackup records the facts and refuses a backup that must not be restored. kind is that of the source.
func (r *Report) takeBackup(v *compare.Report, kind evidence.Kind, o *Options) error {
	if len(v.Members) == 0 || v.Members[0].DB == nil || v.Backup == nil {
		return refusef("", "%s", v.Verdict.Summary)
	}
	m, b := &v.Members[0], v.Backup
	r.Backup = Backup{Name: backup.Name(v), Bytes: b.Size, SHA256: v.Sources[0].SHA256, Trailer: b.Trailer,
		CompactRevision: m.DB.CompactRevision,
		Keys:            m.DB.Keys, ClusterVersion: m.ClusterVersion, StorageVersion: m.DB.StorageVersion,
		WroteBy: m.WroteBy.Etcd}
	for _, l := range b.Layers {
		if l.Outcome != check.Violated {
			continue
		}
		switch l.Name {
		case "metas", "pages", "buckets":
			if onlyWarned(v, l.Checks) { // nothing is lost by it
				r.Notes = append(r.Notes, l.Name+": "+l.Says)
				continue
			}
			return refusef("use another backup, or restore what can still be read of this one, in a new file: "+
				shell.Format("etcd-medic repair db {} --rebuild -o <NEW>.db", shell.Operand(o.Backup.Where)).String(),
				"%s: %s", l.Name, l.Says)
		case "trailer", "size", "alarms":
		default:
			if !o.Broken {
				return refusef("use another backup, or accept it: --accept-contradicting-content", "%s: %s", l.Name,
					l.Says)
			}
			r.Notes = append(r.Notes, l.Name+": "+l.Says)
		}
	}
	if m.DB.CurrentRevision == nil {
		return refusef("", "the revision of the backup cannot be read")
	}
	r.Backup.Revision = *m.DB.CurrentRevision
	if b.Trailer != "match" {
		if !o.Unproven {
			return r.refuseUnproven(kind)
		}
		r.Notes = append(r.Notes, fmt.Sprintf("the sha256 trailer of the backup: %s; nothing proves its content",
			b.Trailer))
	}
	return r.alarms(m, o)
}

// refuseUnproven refuses a backup whose bytes no sha256 proves. A data dir never has one.
func (r *Report) refuseUnproven(kind evidence.Kind) error {
	if kind == evidence.KindDataDir {
		return refusef("diagnose all members first; if this one is the best, restore it with "+
			"--accept-unproven-content (what only its log holds is executed, too)",
			"%s is a data dir: no sha256 proves its content, as in a backup", r.Backup.Name)
	}
	return refusef("use another backup, or accept content that nothing proves: --accept-unproven-content",
		"the sha256 trailer of %s: %s", r.Backup.Name, r.Backup.Trailer)
}

// alarms drops the alarms, since their members no longer exist. But CORRUPT still says that the content is corrupt.
func (r *Report) alarms(m *evidence.Facts, o *Options) error {
	for _, a := range m.Alarms {
		if a.Alarm == "CORRUPT" && !o.Alarmed {
			return refusef("diagnose the old members first, or accept it: --accept-content-flagged-corrupt",
				"the backup holds a CORRUPT alarm of member %s: the old cluster had found its members to differ",
				a.MemberID)
		}
		r.Notes = append(r.Notes, fmt.Sprintf("alarm %s of member %s is not taken along", a.Alarm, a.MemberID))
	}
	return nil
}

// plan completes the member list and derives IDs.
func (r *Report) plan(o *Options, v *compare.Report, old *survivors) ([]datadir.Dir, error) {
	p := &o.Plan
	m := &v.Members[0]
	if len(p.Members) == 0 {
		for _, x := range m.Membership.Members {
			if !x.IsLearner {
				p.Members = append(p.Members, PlanMember{Name: x.Name, PeerURLs: x.PeerURLs, ClientURLs: x.ClientURLs})
			}
		}
		r.Notes = append(r.Notes, "no members were named: those of the backup are taken, with their old URLs")
	}
	r.TokenGiven = p.Token != ""
	if !r.TokenGiven {
		p.Token = fmt.Sprintf("restored-%.12s-%d", r.Backup.SHA256, r.Revision.Start)
	}
	r.Warnings = append(r.Warnings, r.again(o)...)
	notes, err := p.check()
	if err != nil {
		return nil, err
	}
	r.Notes = append(append(r.Notes, notes...), old.notes...)
	for _, x := range m.Membership.Members {
		old.members[uint64(x.ID)] = r.Backup.Name
	}
	var list []datadir.Member
	var ids []uint64
	for _, x := range p.Members {
		id := apply.NewMemberID(x.PeerURLs, p.Token)
		if at := old.members[id]; at != "" {
			return nil, refusef("choose another --initial-cluster-token", "%s would get ID %x, which %s knows as an "+
				"old member: with the old token and URLs, leftovers of the old cluster take the new one for theirs",
				x.Name, id, at)
		}
		list, ids = append(list, datadir.Member{ID: id, Name: x.Name, PeerURLs: x.PeerURLs}), append(ids, id)
	}
	slices.SortFunc(list, func(a, b datadir.Member) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	r.ClusterID, r.Token, r.Servers = dumplog.ID(apply.NewClusterID(ids)), p.Token, serversFor(m)
	return dirsOf(list, uint64(r.ClusterID), minorOf(m), ids)
}

// dirsOf returns the new dirs, in the order of ids: those of a cluster just bootstrapped with these members.
func dirsOf(list []datadir.Member, cluster uint64, minor int, ids []uint64) ([]datadir.Dir, error) {
	n := uint64(len(list))
	d := datadir.Dir{ClusterID: cluster, Term: 1, Index: n, Vote: list[0].ID, Members: list, Minor: minor}
	for i := range list {
		context, err := list[i].JSON()
		if err != nil {
			return nil, err
		}
		d.Voters = append(d.Voters, list[i].ID)
		d.Entries = append(d.Entries, datadir.Entry{Type: dumplog.EntryConfChange, Term: 1, Index: uint64(i + 1),
			Data: datadir.ConfChange(uint64(dumplog.ConfChangeAddNode), list[i].ID, context)})
	}
	var out []datadir.Dir
	for _, id := range ids {
		d.MemberID = id
		out = append(out, d)
	}
	return out, nil
}

// edits returns the changes that turn the backup's database into that of the new cluster.
func (r *Report) edits(d *datadir.Dir) []datadir.Edit {
	e := []datadir.Edit{datadir.SetConsistentIndex(d.Index), datadir.SetMembers(d.Members, nil),
		datadir.ClearAlarm(0, 0), datadir.ClearDowngrade()}
	if release.AnyOf(d.Minor).Has(release.TermInMeta).Excluded() {
		// Servers before 3.5 never write these, so old values would stay forever.
		e = append(e, datadir.SetTerm(0), datadir.SetConfState(nil, nil))
	} else {
		e = append(e, datadir.SetTerm(d.Term), datadir.SetConfState(d.Voters, nil))
	}
	if r.Revision.Bump > 0 {
		e = append(e, datadir.BumpRevision(r.Revision.Bump), datadir.MarkCompacted())
	}
	return e
}

// write writes the dirs. They get their names only if ready returns no error.
func (r *Report) write(ctx context.Context, o *Options, db string, dirs []datadir.Dir,
	ready func(context.Context) error) error {
	var set []datadir.NamedDir
	for i := range dirs {
		set = append(set, datadir.NamedDir{Name: o.Plan.Members[i].Name, Dir: dirs[i]})
	}
	res, err := datadir.WriteSet(ctx, o.Out, set, db, r.edits(&dirs[0]), nil, ready)
	if errors.Is(err, datadir.ErrExists) {
		return refusef("name a new folder", "%v", err)
	}
	if err != nil {
		return err
	}
	for i := range o.Plan.Members {
		x := &o.Plan.Members[i]
		start := startCommand(&o.Plan, x, o.Out)
		r.Members = append(r.Members, Member{Name: x.Name, MemberID: res.Dirs[i].MemberID, PeerURLs: x.PeerURLs,
			ClientURLs: x.ClientURLs,
			Bytes:      res.Dirs[i].Bytes, Start: start.String(), StartArgs: start})
	}
	return nil
}

// verify diagnoses the new dirs together.
func (r *Report) verify(ctx context.Context, o *Options) error {
	var specs []evidence.Spec
	for _, m := range r.Members {
		specs = append(specs, evidence.Spec{Name: m.Name, Where: filepath.Join(o.Out, m.Name)})
	}
	co := o.Compare
	co.Backup = false
	after, err := compare.Diagnose(ctx, specs, co)
	if err != nil {
		return err
	}
	r.After = after.Verdict
	if r.After.Health != check.Healthy {
		return &NotHealthyError{Out: o.Out, Verdict: r.After}
	}
	return nil
}

// NotHealthyError says that dirs were written but their diagnosis found something. Commands end with exit code 6.
type NotHealthyError struct {
	Out     string
	Verdict compare.Verdict
}

// Error returns the verdict on one line.
func (e *NotHealthyError) Error() string {
	return fmt.Sprintf("the new dirs did not pass their diagnosis (%s): %s", e.Verdict.Class, e.Verdict.Summary)
}
