package confirm

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// BaseKind is the kind of state from which the server starts.
type BaseKind string

// The kinds of bases, in the order in which they are preferred.
const (
	NewCluster BaseKind = compare.FromNewCluster
	Backup     BaseKind = "backup"
	SnapshotDB BaseKind = "snapshot-db"
	// MemberDB is the database of a lagging member. It is the last choice: its errors are also in the result.
	MemberDB BaseKind = "member-db"
)

// Base is the state from which the server starts.
type Base struct {
	Kind BaseKind
	// Source is the label of the base's source, Path the database; both are "" for a new cluster.
	Source, Path string
	// Owner is the position of the source that is itself the base, -1 if there is none.
	Owner           int
	Index, Term     uint64
	Revision        int64
	ClusterVersion  string
	Members         []datadir.Member
	Removed         []uint64
	db              *dumpdb.DB
	needs           dumpdb.MetaBucket
	closeWhenUnused bool
}

// close closes a database that this package opened itself.
func (b *Base) close() {
	if b.closeWhenUnused && b.db != nil {
		_ = b.db.Close() // only read
	}
}

// bases lists the states from which the log can be executed. why lists the rejected ones with the reason.
func bases(ctx context.Context, members []*evidence.Member, sv *survey) (found []*Base, why []string) {
	if b, reason := newCluster(members, sv); b != nil {
		found = append(found, b)
	} else if reason != "" {
		why = append(why, reason)
	}
	for i, m := range members {
		if m.HasDB() && m.ConsistentIndex() == m.StoredIndex() { // otherwise the diagnosis doubts the index
			b, err := dbBase(ctx, m.DB.Handle, sv)
			switch {
			case err == nil:
				b.Kind, b.Source, b.Path, b.Owner = kindOf(m), m.Label(), m.Source.Parts().DB, i
				found = append(found, b)
			case !m.HasLog():
				why = append(why, fmt.Sprintf("%s cannot be the base: %v", m.Label(), err))
			}
		}
		if !m.HasSnap() || m.Source.Parts().Snap == "" {
			continue
		}
		for _, s := range m.Snap.SnapDBs {
			b, err := snapBase(ctx, filepath.Join(m.Source.Parts().Snap, filepath.Base(s.File)), sv)
			if err != nil {
				why = append(why, fmt.Sprintf("%s of %s cannot be the base: %v", filepath.Base(s.File), m.Label(), err))
				continue
			}
			b.Source = m.Label()
			found = append(found, b)
		}
	}
	return found, why
}

func kindOf(m *evidence.Member) BaseKind {
	if m.HasLog() {
		return MemberDB
	}
	return Backup
}

// newCluster returns the empty state, if the log starts with the first entry of a new cluster. After a restore the log
// has the same first entries, but its database was not empty.
func newCluster(members []*evidence.Member, sv *survey) (*Base, string) {
	if sv.reach(0) == 0 {
		return nil, ""
	}
	for _, m := range members {
		if m.HasWAL() && m.WAL.Summary.Start == dumplog.StartRestore {
			return nil, "the log begins with a restore from a backup that is not among the sources"
		}
	}
	c := sv.founder
	if c == nil || c.Type != dumplog.ConfChangeAddNode || c.Member == nil || c.Member.ID != c.NodeID ||
		len(c.Member.PeerURLs) == 0 {
		return nil, "entry 1 does not add the first member of a new cluster"
	}
	m := datadir.Member{ID: uint64(c.NodeID), Name: c.Member.Name, PeerURLs: c.Member.PeerURLs,
		ClientURLs: c.Member.ClientURLs}
	return &Base{Kind: NewCluster, Owner: -1, Index: 1, Term: sv.termAt(1), Revision: 1, Members: []datadir.Member{m}},
		""
}

func snapBase(ctx context.Context, path string, sv *survey) (*Base, error) {
	db, err := dumpdb.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := dbBase(ctx, db, sv)
	if err != nil {
		_ = db.Close() // only read
		return nil, err
	}
	b.Kind, b.Path, b.Owner, b.closeWhenUnused = SnapshotDB, path, -1, true
	return b, nil
}

// dbBase reads a database from which the log may continue.
func dbBase(ctx context.Context, db *dumpdb.DB, sv *survey) (*Base, error) {
	b := &Base{db: db}
	meta, err := db.MetaBucket()
	if err != nil {
		return nil, err
	}
	if meta.ConsistentIndex == nil || *meta.ConsistentIndex == 0 {
		return nil, errors.New("it has no consistent index")
	}
	b.Index, b.needs = *meta.ConsistentIndex, meta
	if sv.reach(b.Index) == b.Index {
		return nil, fmt.Errorf("no log holds entry %d, which follows its consistent index", b.Index+1)
	}
	own := uint64(0)
	if meta.Term != nil {
		own = *meta.Term
	}
	b.Term = sv.termAt(b.Index)
	if own != 0 && b.Term != 0 && own != b.Term {
		return nil, fmt.Errorf("it is at entry %d/%d and the log holds %d/%d: they are of different histories", own,
			b.Index, b.Term, b.Index)
	}
	if b.Term == 0 {
		b.Term = max(own, 1)
		if next := sv.termAt(b.Index + 1); own == 0 || own > next {
			b.Term = next
		}
	}
	return b, b.read(ctx)
}

// read reads what the scratch data dir needs, and refuses a base that is damaged or of another history.
func (b *Base) read(ctx context.Context) error {
	rep, err := b.db.Check(ctx)
	if err != nil {
		return err
	}
	if len(rep.Damage) > 0 {
		return fmt.Errorf("it is damaged in %s, first: %w", plural.Of(len(rep.Damage), "place", "places"),
			rep.Damage[0])
	}
	if t, err := b.db.Trailer(); err == nil && t.State == "mismatch" {
		return errors.New("its sha256 trailer does not match its bytes")
	}
	if b.Revision, err = b.db.CurrentRev(); err != nil {
		return err
	}
	cluster, err1 := b.db.Cluster()
	members, err2 := b.db.Members()
	removed, err3 := b.db.RemovedMembers()
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	b.ClusterVersion = cluster.Version
	b.Members, b.Removed = membersOf(members), idsOf(removed)
	if len(b.Members) == 0 {
		return errors.New("it names no member")
	}
	return nil
}

func membersOf(rows []dumpdb.Member) []datadir.Member {
	out := make([]datadir.Member, 0, len(rows))
	for _, m := range rows {
		out = append(out, datadir.Member{ID: uint64(m.ID), Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs,
			IsLearner: m.IsLearner})
	}
	return out
}

func idsOf(rows []dumpdb.ID) []uint64 {
	out := make([]uint64, 0, len(rows))
	for _, id := range rows {
		out = append(out, uint64(id))
	}
	return out
}

// anchored refuses a base without any of the log's last writes up to the base's index. IDs and indexes alone do not
// prove a common history, since a restore with the same flags uses them again.
func anchored(ctx context.Context, b *Base, logs []*evidence.Member) error {
	var writes replay.LastWrites
	for e, err := range replay.Log(ctx, logs) {
		if err != nil {
			return err
		}
		if e.Index > b.Index {
			break
		}
		writes.Add(&e)
	}
	m, err := replay.NewMachine(ctx, b.db, replay.MachineOptions{})
	if err != nil {
		return err
	}
	f := writes.Find(m)
	switch {
	case f.Tried > 0 && f.Found == 0:
		return fmt.Errorf("it shows none of the last %d writes that the log has up to its index %d", f.Tried, b.Index)
	case f.Most() || f.Found > 0 && b.Kind != Backup:
		return nil
	}
	for _, l := range logs {
		if l.WAL.Summary.Start == dumplog.StartRestore && (f.Tried > 0 || b.needs.Term == nil) {
			return errors.New("nothing shows that it was taken after the restore that the log begins with")
		}
	}
	return nil
}
