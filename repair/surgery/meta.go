package surgery

import (
	"context"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// Meta changes control values. Nil fields are unchanged.
type Meta struct {
	// ConsistentIndex also sets meta/term to the term of the entry, if the log has it.
	ConsistentIndex *uint64
	AuthRevision    *uint64
	// StorageVersion is "3.6.0" or similar; "" removes it.
	StorageVersion *string
	// MembersFromRaft makes buckets members and members_removed agree with raft's own member list; ConfStateFromRaft
	// does so for meta/confState.
	MembersFromRaft, ConfStateFromRaft bool
	// ClearAlarms are the alarms to clear.
	ClearAlarms []AlarmRef
	// DropV2 removes the v2 keys of users from the .snap files.
	DropV2 bool
}

// Name is meta.
func (Meta) Name() string { return "meta" }

// changes are the parts of Meta, in order. To add one, add a line here.
var changes = []func(context.Context, *Meta, *work) ([]datadir.Edit, error){
	setIndex, setAuthRevision, setStorageVersion, setMembers, setConfState, clearAlarms, dropV2,
}

func (c Meta) apply(ctx context.Context, w *work) error {
	if w.parts.DB == "" || !w.source().HasDB() {
		return refusef("", "%s has no database that opens", w.report.Source)
	}
	var edits []datadir.Edit
	for _, change := range changes {
		e, err := change(ctx, &c, w)
		if err != nil {
			return err
		}
		edits = append(edits, e...)
	}
	if len(edits) == 0 {
		if len(w.snaps) > 0 {
			return nil
		}
		return refusef("", "nothing would change in %s", w.report.Source)
	}
	w.madeDB = true
	return w.out.CopyDB(ctx, w.dbPath(), w.parts.DB, edits...)
}

// setAuthRevision compares the new revision with the result of executing every entry once, and with the other members.
func setAuthRevision(ctx context.Context, c *Meta, w *work) ([]datadir.Edit, error) {
	if c.AuthRevision == nil {
		return nil, nil
	}
	m, to := w.source(), *c.AuthRevision
	if to == m.DB.Auth.Revision && m.DB.Auth.HasRevision {
		return nil, refusef("", "the auth revision is %d already", to)
	}
	edits := []datadir.Edit{datadir.SetAuthRevision(to)}
	w.did("auth/authRevision is set from %d to %d", m.DB.Auth.Revision, to)
	if _, r := w.replayed(ctx); r != nil && r.GivesAuth() {
		if r.AuthExpected == to {
			return edits, nil
		}
		return edits, w.need(AcceptDivergence, "",
			fmt.Sprintf("the log gives %d when every auth entry counts once, not %d", r.AuthExpected, to))
	}
	var others []string
	for _, p := range w.peers() {
		if p.HasDB() {
			others = append(others, fmt.Sprint(p.DB.Auth.Revision))
		}
	}
	if len(others) > 0 && !slices.ContainsFunc(others, func(s string) bool { return s != fmt.Sprint(to) }) {
		w.note("the other members have %d too", to)
		return edits, nil
	}
	return edits, w.need(AcceptDivergence, "name other members with --with", "the log does not reach back far enough "+
		"to tell the auth revision, and the other members named do not agree on "+fmt.Sprint(to))
}

// setStorageVersion checks what the server checks at its start (server/storage/schema/schema.go, 3.6+).
func setStorageVersion(_ context.Context, c *Meta, w *work) ([]datadir.Edit, error) {
	if c.StorageVersion == nil {
		return nil, nil
	}
	m, to := w.source(), *c.StorageVersion
	was := m.DB.Meta.StorageVersion
	if to == was {
		return nil, refusef("", "the storage version is %q already", to)
	}
	edits := []datadir.Edit{datadir.SetStorageVersion(to)}
	w.did("meta/storageVersion is set from %q to %q", was, to)
	version, cluster := release.Of(to), release.Of(m.DB.Cluster.Version)
	switch {
	case to != "" && (!version.Has(release.StorageVersion).Certain() || version.TooNew()):
		return nil, refusef("3.6.0, 3.7.0, 3.8.0 or none", "no server writes storage version %q", to)
	case to != "" && (m.DB.Meta.Term == nil || m.DB.Meta.ConfState == nil):
		return nil, refusef("start the member with etcd 3.5 first", "without meta/term and meta/confState no server "+
			"takes the database for %s", to)
	case to != "" && m.DB.Cluster.Version != "" && !cluster.Known() || version.Above(cluster):
		return nil, refusef("servers raise it themselves once all members run the newer line",
			"the cluster runs version %s, and its servers do not start on storage version %s", m.DB.Cluster.Version, to)
	case cluster.Above(release.Highest(version, release.StorageVersion.Last())):
		return edits, w.need(AcceptDivergence, "",
			fmt.Sprintf("the cluster runs version %s: servers of an older line do not know everything it wrote",
				m.DB.Cluster.Version))
	}
	return edits, nil
}

// setMembers and setConfState use raft's own list, which decides quorums.
func setMembers(_ context.Context, c *Meta, w *work) ([]datadir.Edit, error) {
	if !c.MembersFromRaft {
		return nil, nil
	}
	v, err := w.raftView()
	if err != nil {
		return nil, err
	}
	w.did("buckets members and members_removed carry raft's own list: %s, %d removed",
		plural.Of(len(v.Members), "member", "members"), len(v.Removed))
	return []datadir.Edit{datadir.SetMembers(v.Members, v.Removed)}, nil
}

func setConfState(_ context.Context, c *Meta, w *work) ([]datadir.Edit, error) {
	if !c.ConfStateFromRaft {
		return nil, nil
	}
	v, err := w.raftView()
	if err != nil {
		return nil, err
	}
	w.did("meta/confState carries raft's own list: %s, %s", plural.Of(len(v.Voters), "voter", "voters"),
		plural.Of(len(v.Learners), "learner", "learners"))
	return []datadir.Edit{datadir.SetConfState(v.Voters, v.Learners)}, nil
}

func (w *work) raftView() (*datadir.View, error) {
	m := w.source()
	if !m.Membership.RaftKnown {
		return nil, refusef("give the whole data dir", "%s shows no ConfState: raft's own list is not known", m.Label())
	}
	v, err := datadir.ViewOf(m)
	if err != nil {
		return nil, err
	}
	if !m.ConfigurationCurrent() {
		return v, w.need(AcceptDivergence, "",
			fmt.Sprintf("the log of %s has a hole, or ends before what the database has applied: conf changes can be "+
				"missing from raft's list", m.Label()))
	}
	for _, p := range w.peers() {
		if p.Membership.RaftKnown && p.Commit >= m.Commit && !sameIDs(p.Membership.Voters, m.Membership.Voters) {
			return v, w.need(AcceptDivergence, "", fmt.Sprintf("%s, which has come as far, knows other voters",
				p.Label()))
		}
	}
	return v, nil
}

func sameIDs(a, b []dumplog.ID) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
