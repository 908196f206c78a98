package compare

import (
	"context"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

// ChangeWindow says what Changes compares.
type ChangeWindow struct {
	From, To string
	// AppliedIndex is the raft index that both have applied, 0 when unknown; FromRevision and ToRevision are their
	// revisions at that index.
	AppliedIndex             uint64
	FromRevision, ToRevision int64
	// TTLs are the stored TTLs of the leases of To, in seconds.
	TTLs map[int64]int64
}

// Changes calls begin once, and then each for every key that has to be deleted or put so that the first source holds
// what the second holds. Keys differ when their value or lease does; revisions cannot be copied. Damage that hides keys
// of either source is an error, since what is hidden would be deleted.
func Changes(ctx context.Context, from, to evidence.Spec, o Options, begin func(ChangeWindow) error,
	each func(diff.Change) error) error {
	o.fill()
	set, err := evidence.Open(ctx, []evidence.Spec{from, to},
		evidence.Options{Hash: true, Deep: true, Progress: o.Progress, Access: o.Access})
	if err != nil {
		return err
	}
	defer func() { _ = set.Close() }()
	if len(set.Failed) > 0 {
		return set.Failed[0].Err
	}
	if clusters(set.Members) > 1 {
		return mixed(set.Members)
	}
	rp, err := replay.RunWithPlausibleIndex(ctx, set.Members, replay.Options{MaxBytes: o.ReplayBytes})
	if err != nil {
		return err
	}
	d := diff.Align(set.Members, rp)
	w := ChangeWindow{From: set.Members[0].Label(), To: set.Members[1].Label(), AppliedIndex: d.Common,
		FromRevision: d.Revs[0], ToRevision: d.Revs[1], TTLs: map[int64]int64{}}
	if db := set.Members[1].DB; db != nil {
		for _, l := range db.Leases {
			w.TTLs[int64(l.ID)] = l.TTL
		}
	}
	if err := begin(w); err != nil {
		return err
	}
	if err := d.Changes(ctx, 0, 1, diff.Options{}, each); err != nil {
		return err
	}
	return set.Unchanged(ctx)
}
