package node

import (
	"context"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/release"
)

// Need says which servers can open the data dirs.
type Need struct {
	// Storage is the highest storageVersion of the meta bucket and Cluster the highest clusterVersion of the cluster
	// bucket over all members; unknown if no member has one.
	Storage, Cluster Version
	// Written is the newest minor version that wrote one of the dirs; unknown if nothing in them shows it.
	Written Version
	// V2EntriesAfterSnapshot is true if a member's log has v2 requests after its newest valid snapshot. Servers up to
	// 3.5 write them for member attributes and the cluster version. 3.7 panics on the first one.
	V2EntriesAfterSnapshot bool
	// V2WritesAfterSnapshot is true if one of these is neither a member's attributes nor the cluster version. Health
	// checks of 3.3 and 3.4 write such entries. 3.6 also panics on them (v2ToV3Request in its etcdserver/apply_v2.go).
	V2WritesAfterSnapshot bool
	// BucketOnlyMembers is true if bucket members lists members that are not in raft's configuration. Servers of a
	// release that reads members from the database bring them back.
	BucketOnlyMembers bool
}

// Version returns the highest of storage version, cluster version and the version that wrote the dirs.
func (n Need) Version() Version {
	v := n.Cluster
	for _, o := range []Version{n.Storage, n.Written} {
		if o.AtLeast(v) {
			v = o
		}
	}
	return v
}

// Opens reports whether a server opens the dirs, and if not, why. It rejects an older server: 3.4 opens newer dirs
// silently and lowers their cluster version.
func (n Need) Opens(s Version) (reason string, ok bool) {
	v := n.Version()
	switch {
	case !s.has(release.V2Executed) && n.V2WritesAfterSnapshot:
		return fmt.Sprintf("the log has v2 requests after its last snapshot (health checks up to 3.4 write them); "+
			"etcd %s panics on them", s.Line()), false
	case !v.Known():
		return "", true
	case v.Major != s.Major:
		return fmt.Sprintf("the dirs are of etcd %s", v.Line()), false
	case v.Release().Above(s.Release()):
		return fmt.Sprintf("the dirs are of etcd %s; an older server must not open them", v.Line()), false
	case !s.has(release.V2Decoded) && s.Release().Above(v.Release()) && n.V2EntriesAfterSnapshot:
		return fmt.Sprintf("the log has v2 requests after its last snapshot; etcd %s panics on them", s.Line()),
			false
	case n.BucketOnlyMembers && s.has(release.MembersFromDB) && s.Release().Above(v.Release()):
		return fmt.Sprintf("bucket members lists members that are not in raft's configuration; etcd %s brings "+
			"them back", s.Line()), false
	case s.has(release.QuorumFromDB) && !v.has(release.TermInMeta):
		return fmt.Sprintf("etcd %s does not open dirs of etcd %s", s.Line(), v.Line()), false
	}
	return "", true
}

// Raises describes what opening with this server changes permanently, "" if the versions stay the same.
func (n Need) Raises(s Version) string {
	if v := n.Version(); s.Release().Above(v.Release()) {
		return fmt.Sprintf("etcd %s upgrades these dirs from etcd %s permanently: servers of that version cannot "+
			"open them afterwards", s.Line(), v.Line())
	}
	return ""
}

// Choose returns the server to run the dirs with: the external program if one is named, else the same minor version,
// else the next newer one that opens them. It never chooses an older one.
func Choose(ctx context.Context, n Need, external string) (Server, error) {
	if external != "" {
		s, err := External(ctx, external)
		if err != nil {
			return Server{}, err
		}
		if reason, ok := n.Opens(s.Version); !ok {
			return Server{}, &refusal.Error{What: s.String(), Reason: reason, Hint: "name a server of the minor " +
				"version that " +
				"wrote the dirs"}
		}
		return s, nil
	}
	return pick(n, AtHand())
}

// AtHand returns the servers that this program contains, oldest first.
func AtHand() []Server {
	out := []Server{Bundled()}
	for minor := range release.Newest + 2 {
		if s, ok := Embedded(minor); ok && minor != out[0].Version.Minor {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b Server) int { return a.Version.Minor - b.Version.Minor })
	return out
}

func pick(n Need, servers []Server) (Server, error) {
	if !n.Version().Known() && !n.V2WritesAfterSnapshot {
		return Bundled(), nil
	}
	reason := "this program has no server for it"
	for _, s := range servers {
		why, ok := n.Opens(s.Version)
		if ok {
			return s, nil
		}
		reason = why
	}
	return Server{}, &refusal.Error{
		What: "a server for etcd " + n.Version().Line(), Reason: reason + listed(servers),
		Hint: "name one with --etcd-binary, or use a build with more etcd versions (make build)",
	}
}

func listed(servers []Server) string {
	s := "; at hand:"
	for _, v := range servers {
		s += " " + v.Version.String()
	}
	return s
}
