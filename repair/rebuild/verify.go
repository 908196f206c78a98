package rebuild

import (
	"context"
	"errors"
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/release"
)

// hashed are the small buckets that are compared with members.
var hashed = []string{"lease", "alarm", "auth", "authUsers", "authRoles", "members", "members_removed", "cluster"}

// verify compares the result with the database of every member that is after the base.
func (b *builder) verify(ctx context.Context, path string) error {
	db, err := dumpdb.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	h, err := db.HashKV(ctx, 0)
	if err != nil {
		return fmt.Errorf("the result does not read back: %w", err)
	}
	b.res.HashKV = h.Hash
	if len(b.o.Skip) > 0 {
		b.res.note("with a skipped entry no member can have the same content; the result was not compared with any")
		return nil
	}
	for _, m := range b.members {
		b.say("comparing the result with %s", m.Label())
		v, err := b.against(ctx, db, m)
		if err != nil {
			return err
		}
		if v != nil {
			b.res.Verified = append(b.res.Verified, *v)
		}
	}
	if len(b.res.Verified) == 0 {
		b.res.note("no member at hand passed this point, so nothing proves the result beyond the rules it was made by")
	}
	return nil
}

// against compares the result with one member; nil if the comparison adds nothing to the base.
func (b *builder) against(ctx context.Context, db *dumpdb.DB, m *evidence.Member) (*Verification, error) {
	if m.ConsistentIndex() <= b.from.Index && b.base != nil {
		return nil, nil
	}
	v := &Verification{Member: m.Label(), Buckets: []Bucket{}}
	key, rev, err := b.keys(ctx, db, m)
	if err != nil {
		return nil, err
	}
	v.Revision = rev
	v.Buckets = append(v.Buckets, key)
	if v.HashKV, err = b.hashKV(ctx, db, m, rev); err != nil {
		return nil, err
	}
	for _, name := range hashed {
		x, err := b.bucket(ctx, db, m, name)
		if err != nil {
			return nil, err
		}
		v.Buckets = append(v.Buckets, x)
	}
	return v, nil
}

// keys compares bucket key up to the lower revision of both, as if both had the same compact revision.
func (b *builder) keys(ctx context.Context, db *dumpdb.DB, m *evidence.Member) (Bucket, int64, error) {
	out := Bucket{Bucket: "key"}
	theirs, err := m.DB.Handle.CurrentRev()
	if err != nil {
		out.Why = err.Error()
		return out, 0, nil
	}
	rev := min(b.res.To.Revision, theirs)
	comp := max(b.res.To.CompactRevision, m.DB.Meta.CompactRev())
	if comp > rev {
		out.Why = fmt.Sprintf("the member is compacted at %d, above revision %d", comp, rev)
		return out, rev, nil
	}
	ours, err1 := db.ContentHash(ctx, comp, rev)
	other, err2 := m.DB.Handle.ContentHash(ctx, comp, rev)
	if ctx.Err() != nil {
		return out, rev, ctx.Err()
	}
	if err := errors.Join(err1, err2); err != nil {
		out.Why = err.Error()
		return out, rev, nil
	}
	out.Equal = release.AnswerOf(ours == other)
	return out, rev, nil
}

// hashKV compares the server's hash if it is comparable: at equal compact revisions.
func (b *builder) hashKV(ctx context.Context, db *dumpdb.DB, m *evidence.Member, rev int64) (release.Answer, error) {
	if b.res.To.CompactRevision != m.DB.Meta.CompactRev() {
		return release.Unknown, nil
	}
	ours, err1 := db.HashKV(ctx, rev)
	theirs, err2 := m.DB.Handle.HashKV(ctx, rev)
	if ctx.Err() != nil {
		return release.Unknown, ctx.Err()
	}
	if err1 != nil || err2 != nil {
		return release.Unknown, nil // keys has reported the reason
	}
	return release.AnswerOf(ours == theirs), nil
}

// bucket compares a small bucket, if no entry between the two states may have changed it.
func (b *builder) bucket(ctx context.Context, db *dumpdb.DB, m *evidence.Member, name string) (Bucket, error) {
	out := Bucket{Bucket: name}
	lo, hi := min(b.res.To.Index, m.AppliedMin), max(b.res.To.Index, m.AppliedMax)
	if b.sv.touched(name, lo, hi) {
		out.Why = fmt.Sprintf("entries between %d and %d change it", lo+1, hi)
		return out, nil
	}
	ours, err1 := db.BucketHash(ctx, name)
	other, err2 := m.DB.Handle.BucketHash(ctx, name)
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	if err := errors.Join(err1, err2); err != nil {
		out.Why = err.Error()
		return out, nil
	}
	out.Equal = release.AnswerOf(ours == other)
	return out, nil
}
