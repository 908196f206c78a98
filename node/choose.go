package node

import (
	"context"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/release"
)

// Need says what the data dirs ask of a server.
type Need struct {
	// Storage is the highest storageVersion of the meta bucket and Cluster the highest clusterVersion of the cluster
	// bucket over all members; unknown where no member tells.
	Storage, Cluster Version
	// Written is the newest minor version that wrote one of the dirs, unknown where no mark tells.
	Written Version
	// V2EntriesAfterSnapshot is true when a member has log entries behind its newest valid snapshot that are v2
	// requests, as servers up to 3.5 write for attributes and the cluster version. 3.7 panics on the first of them.
	V2EntriesAfterSnapshot bool
	// V2WritesAfterSnapshot is true when one of these is neither a member's attributes nor the cluster version: health
	// checks of 3.3 and 3.4 are. 3.6 panics on them, too (v2ToV3Request in its etcdserver/apply_v2.go).
	V2WritesAfterSnapshot bool
	// BucketOnlyMembers is true when bucket members lists members that raft's configuration does not know. Servers of a
	// line that takes members from the database bring them back.
	BucketOnlyMembers bool
}

// Version returns the highest of storage version, cluster version and what wrote the dirs: what they have been raised
// to.
func (n Need) Version() Version {
	v := n.Cluster
	for _, o := range []Version{n.Storage, n.Written} {
		if o.AtLeast(v) {
			v = o
		}
	}
	return v
}

// Opens tells whether a server opens the dirs, and if not, why. An older server is never taken: 3.4 opens newer dirs
// silently and lowers their cluster version.
func (n Need) Opens(s Version) (reason string, ok bool) {
	v := n.Version()
	switch {
	case !s.has(release.V2Executed) && n.V2WritesAfterSnapshot:
		return fmt.Sprintf("the log holds v2 requests behind its last snapshot (health checks write them up to 3.4); "+
			"etcd %s panics on them", s.Line()), false
	case !v.Known():
		return "", true
	case v.Major != s.Major:
		return fmt.Sprintf("the dirs are of etcd %s", v.Line()), false
	case v.Release().Above(s.Release()):
		return fmt.Sprintf("the dirs are of etcd %s; an older server must not open them", v.Line()), false
	case !s.has(release.V2Decoded) && s.Release().Above(v.Release()) && n.V2EntriesAfterSnapshot:
		return fmt.Sprintf("the log holds v2 requests behind the last snapshot; etcd %s panics on them", s.Line()),
			false
	case n.BucketOnlyMembers && s.has(release.MembersFromDB) && s.Release().Above(v.Release()):
		return fmt.Sprintf("bucket members lists members that raft's configuration does not know; etcd %s brings "+
			"them back", s.Line()), false
	case s.has(release.QuorumFromDB) && !v.has(release.TermInMeta):
		return fmt.Sprintf("etcd %s does not open dirs of etcd %s", s.Line(), v.Line()), false
	}
	return "", true
}

// Raises tells what opening with this server changes for good, "" when the versions stay.
func (n Need) Raises(s Version) string {
	if v := n.Version(); s.Release().Above(v.Release()) {
		return fmt.Sprintf("etcd %s raises these dirs from etcd %s for good: they can not go back to servers of that line", s.Line(), v.Line())
	}
	return ""
}

// Choose returns the server to run the dirs with: the external program if one is named, else the same minor version,
// else the next newer one that opens them. It refuses rather than take an older one.
func Choose(ctx context.Context, n Need, external string) (Server, error) {
	if external != "" {
		s, err := External(ctx, external)
		if err != nil {
			return Server{}, err
		}
		if reason, ok := n.Opens(s.Version); !ok {
			return Server{}, &RefusedError{What: s.String(), Reason: reason, Hint: "name a server of the line that " +
				"wrote the dirs"}
		}
		return s, nil
	}
	return pick(n, AtHand())
}

// AtHand returns the servers that this program brings, oldest first.
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
	reason := "no server is at hand"
	for _, s := range servers {
		why, ok := n.Opens(s.Version)
		if ok {
			return s, nil
		}
		reason = why
	}
	return Server{}, &RefusedError{
		What: "a server for etcd " + n.Version().Line(), Reason: reason + listed(servers),
		Hint: "name one with --etcd-binary, or take a build that brings more lines (make build)",
	}
}

func listed(servers []Server) string {
	s := "; at hand:"
	for _, v := range servers {
		s += " " + v.Version.String()
	}
	return s
}
