package run

import (
	"context"
	"fmt"

	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// noteVersions says which new members run another minor version than the member whose content is kept. Such a member
// serves, and holds the same: the repair does not fail.
func (r *runner) noteVersions(ctx context.Context, members []*plan.Member) error {
	kept, err := r.minorOf(ctx, r.best())
	if err != nil || !kept.Known() {
		return err
	}
	for _, m := range members {
		if r.idOf(m) == uint64(m.ID) {
			continue
		}
		mine, err := r.minorOf(ctx, m)
		if err != nil {
			return err
		}
		if !mine.Known() || mine == kept {
			continue
		}
		text := "the cluster version rises once every member runs it, and there is no way back without a downgrade"
		if kept.AtLeast(mine) {
			text = "the cluster version cannot rise above it"
		}
		r.notice(fmt.Sprintf("%s was started with etcd %s, and %s runs %s: %s. If that is not wanted, replace it once "+
			"more, with a server of that version", m.Name, mine.Line(), r.best().Name, kept.Line(), text))
	}
	return nil
}

// minorOf returns the minor version that a member's server reports, not known if it reports none.
func (r *runner) minorOf(ctx context.Context, m *plan.Member) (node.Version, error) {
	ctx, cancel := context.WithTimeout(ctx, r.limits.call)
	defer cancel()
	st, err := r.status(ctx, m)
	if err != nil {
		return node.Version{}, err
	}
	v, err := node.ParseVersion(st.Version)
	if err != nil {
		return node.Version{}, nil //nolint:nilerr // a server with a version of its makers
	}
	return node.Version{Major: v.Major, Minor: v.Minor}, nil
}
