package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// isOldDir returns a check for the data dir that a member had under its old ID.
func isOldDir(m *plan.Member) func(*evidence.Member) bool {
	return func(e *evidence.Member) bool { return e.MemberID == m.ID && e.ClusterID != 0 }
}

// moveAside has the data dir of a stopped member moved, and checks where that can be seen from here.
func (r *runner) moveAside(ctx context.Context, m *plan.Member, places []string, fits func(*evidence.Member) bool) (
	string, error,
) {
	where, err := r.host.aside(ctx, m)
	if err != nil {
		return "", err
	}
	if dir, set := r.left.findDir(ctx, m, places, fits); set != nil {
		defer func() { _ = set.Close() }() // only read
		return "", fmt.Errorf("the data dir of %s (%s) is still at %s, although it was said to be moved aside: a "+
			"server that starts there does not join. Move it, also if it is only a copy, or correct the hook", m.Name,
			set.Members[0].MemberID, dir)
	}
	return where, nil
}

// startsEmpty has a data dir moved aside with which no server joins as the member: the old one if it is in its place
// again, because a server that someone started while it was moved writes it again; or one under an ID that the cluster
// does not list, as a start with --initial-cluster-state=new leaves.
func (r *runner) startsEmpty(ctx context.Context, m *plan.Member) error {
	if r.idOf(m) == uint64(m.ID) {
		return nil
	}
	before, _ := r.left.oldDirs(m)
	fits := r.cannotJoin(ctx, m)
	dir, set := r.left.findDir(ctx, m, before, fits)
	if set == nil {
		return ctx.Err()
	}
	id := set.Members[0].MemberID
	_ = set.Close() // only read
	what, where := "its old data dir "+dir+", which was moved aside", "its old ID "+id.String()+" is at "+dir+" again"
	if id != m.ID {
		what = "the data dir " + dir + " under ID " + id.String() + ", which the cluster does not list"
		where = "ID " + id.String() + ", which the cluster does not list, is at " + dir
	}
	if !r.host.down(ctx, m) {
		return fmt.Errorf("%s runs on %s: stop it, and run the same command again", m.Name, what)
	}
	r.notice(fmt.Sprintf("a data dir of %s under %s: it is moved aside once more", m.Name, where))
	_, err := r.moveAside(ctx, m, before, fits)
	return err
}

// cannotJoin returns a check for data dirs of the cluster that are not the member's: its old one, and those under an ID
// that is not listed. A listed ID is another member's, or the one under which it joins.
func (r *runner) cannotJoin(ctx context.Context, m *plan.Member) func(*evidence.Member) bool {
	list, unconfirmed, err := r.listNow(ctx)
	isOld, known := isOldDir(m), err == nil && unconfirmed == "" && find(list, r.idOf(m)) != nil
	return func(e *evidence.Member) bool {
		return isOld(e) || known && e.ClusterID == r.plan.Cluster.ID && e.MemberID != 0 &&
			find(list, uint64(e.MemberID)) == nil
	}
}

// noteDeleted says that an old data dir which could be read here before the move cannot be found after it.
func (r *runner) noteDeleted(ctx context.Context, m *plan.Member, after []string) {
	for _, o := range r.onlyHeld() {
		if o.Member != m.Name || o.Dir == "" {
			continue
		}
		_, err := os.Stat(o.Dir)
		dir, set := r.left.findOldDir(ctx, m, after)
		if set != nil {
			_ = set.Close() // only read
		}
		if dir == "" && errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil {
			r.notice(fmt.Sprintf("the old data dir of %s was at %s, and is neither next to it nor at %s now: look "+
				"where it was moved to. If it was deleted, only the snapshot of it is left", m.Name, o.Dir,
				AsidePath(r.left.planFile(), m)))
		}
	}
}
