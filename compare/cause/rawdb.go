package cause

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

var restoredFromRaw = described(Cause{
	ID:    RestoredFromRawDB,
	Match: matchRawDB,
})

func matchRawDB(in *Input) *Match {
	m := &Match{Certainty: Hint, Secondary: true, Because: foreign(in), RefutedBy: "a record in the restored " +
		"database of " +
		"a write that the old member's database lacks"}
	for _, x := range in.Members {
		if !check.Restored(x) || !x.HasDB() || x.DB.KV == nil {
			continue
		}
		for _, o := range in.Members {
			if o.ClusterID == 0 || o.ClusterID == x.ClusterID || !o.HasDB() || o.DB.KV == nil ||
				!o.Version.Follows(release.TermInMeta) || !slices.Contains(x.Membership.MetaConfState, o.MemberID) &&
				!slices.Contains(x.Membership.Bucket, o.MemberID) {
				continue
			}
			if e := firstUnapplied(in.Context(), o); e != nil && endsLike(in.Context(), x, o, e) {
				m.Members = append(m.Members, x.Label())
				m.RefutedBy = fmt.Sprintf("the write of entry %d of %s in the restored database", e.Index, o.Label())
			}
		}
	}
	if len(m.Members) == 0 || len(m.Because) == 0 {
		return nil
	}
	return m
}

// firstUnapplied is the first plain put that the member's log has committed and its database has not applied.
func firstUnapplied(ctx context.Context, m *evidence.Member) *replay.Entry {
	if m.Commit <= m.ConsistentIndex() {
		return nil
	}
	for e, err := range replay.Log(ctx, []*evidence.Member{m}) {
		if err != nil || e.Index > m.Commit {
			return nil
		}
		if e.Index > m.ConsistentIndex() && e.Req.Kind == dumplog.KindPut {
			return &e
		}
	}
	return nil
}

// endsLike reports whether the restored database holds the old one's last record at its revision, and not the entry's
// write after it.
func endsLike(ctx context.Context, x, old *evidence.Member, e *replay.Entry) bool {
	last := old.DB.KV.LastRev
	a, b := recordAt(ctx, x, last), recordAt(ctx, old, last)
	if a == nil || b == nil || !bytes.Equal(a.Key, b.Key) || !bytes.Equal(a.Value, b.Value) || a.Version != b.Version {
		return false
	}
	next := recordAt(ctx, x, dumpdb.Rev{Main: last.Main + 1})
	return next == nil || !bytes.Equal(next.Key, e.Req.Put.Key) || !bytes.Equal(next.Value, e.Req.Put.Value)
}

// recordAt returns the put at a revision, nil when there is none.
func recordAt(ctx context.Context, m *evidence.Member, at dumpdb.Rev) *dumpdb.KeyValue {
	for r, err := range m.DB.Handle.Query(ctx, dumpdb.Query{FromRev: at.Main, ToRev: at.Main}) {
		if err != nil || r.Err != nil || r.Tombstone || r.Rev != at {
			continue
		}
		kv := r.KV
		kv.Key, kv.Value = bytes.Clone(kv.Key), bytes.Clone(kv.Value)
		return &kv
	}
	return nil
}
