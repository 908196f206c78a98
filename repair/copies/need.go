package copies

import (
	"context"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/node"
)

// NeedOf returns which servers can open the data dirs, from the versions of all members and the logs of those that are
// started.
func NeedOf(ctx context.Context, members []*evidence.Member, started func(*evidence.Member) bool) (node.Need, error) {
	var n node.Need
	for _, m := range members {
		if m.DB != nil {
			raise(&n.Storage, m.DB.Meta.StorageVersion)
			raise(&n.Cluster, m.DB.Cluster.Version)
		}
		// A cluster keeps its version until all members run the newer release, and a restore by an old tool sets an old
		// one.
		if v := (node.Version{Major: 3, Minor: m.Version.Minor}); m.Version.Minor > 0 && v.AtLeast(n.Written) {
			n.Written = v
		}
		if !started(m) || n.V2WritesAfterSnapshot {
			continue
		}
		some, writes, err := v2Tail(ctx, m)
		if err != nil {
			return n, err
		}
		n.V2EntriesAfterSnapshot = n.V2EntriesAfterSnapshot || some
		n.V2WritesAfterSnapshot = writes
	}
	return n, nil
}

func raise(v *node.Version, text string) {
	if got, err := node.ParseVersion(text); err == nil && got.AtLeast(*v) {
		*v = got
	}
}

// v2Tail reports whether the log has v2 requests after its newest snapshot, and whether one of them writes something
// other than a member's attributes or the cluster version.
func v2Tail(ctx context.Context, m *evidence.Member) (some, writes bool, err error) {
	if !m.HasWAL() {
		return false, false, nil
	}
	var after uint64
	for _, s := range m.WAL.Summary.Snapshots {
		after = max(after, s.Index)
	}
	var d dumplog.Decoder
	for e, err := range m.WAL.Log.Entries(ctx, &m.WAL.Summary) {
		if err != nil {
			return some, writes, ctx.Err() // a server also stops reading at damage
		}
		if e.Index <= after || e.Overwritten {
			continue
		}
		if r, err := d.Decode(&e); err == nil && r != nil && r.Kind == dumplog.KindV2 && r.V2 != nil {
			some, writes = true, writes || !ofMembership(r.V2)
		}
	}
	return some, writes, nil
}

func ofMembership(r *dumplog.V2Request) bool {
	_, attr := r.MemberAttr()
	return r.Method == "PUT" && (attr || r.Path == "/0/version")
}
