package run

import (
	"context"
	"fmt"

	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// noteVersions says which new members run another minor version than the member whose content is kept. Such a member
// serves, and holds the same: the repair does not fail.
func (r *runner) noteVersions(ctx context.Context, members []*plan.Member) {
	kept, ok := r.versionOf(ctx, r.best())
	if !ok {
		return
	}
	for _, m := range members {
		if r.idOf(m) == uint64(m.ID) {
			continue
		}
		mine, ok := r.versionOf(ctx, m)
		minor := release.Of(kept).Minor()
		if !ok || release.Of(mine).IsMinor(minor).Certain() {
			continue
		}
		text := "the cluster version rises once every member runs it, and there is no way back without a downgrade"
		if release.Of(mine).Reach(release.Release{Minor: minor}).Excluded() {
			text = "the cluster version cannot rise above it"
		}
		r.notice(fmt.Sprintf("%s was started with etcd %s, and %s runs %s: %s. If that is not wanted, replace it once "+
			"more, with a server of that version", m.Name, mine, r.best().Name, kept, text))
	}
}

// versionOf returns the version that a member's server reports. ok is false if it does not.
func (r *runner) versionOf(ctx context.Context, m *plan.Member) (version string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, r.limits.call)
	defer cancel()
	st, err := r.status(ctx, m)
	if err != nil || release.Of(st.Version).Minor() == 0 {
		return "", false
	}
	return st.Version, true
}
