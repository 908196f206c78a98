package evidence

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/etcd-medic/etcd-medic/release"
)

// Version is the etcd line that wrote a source, as far as its marks tell.
type Version struct {
	// Minor is the 3.x minor, 0 when unknown.
	Minor int
	// Text is "3.4.x" or such, "" when unknown.
	Text string
	// Because names the mark it was read from.
	Because string
}

// Release is the version for questions to the table of releases: marks tell the minor version, never the patch release.
func (v Version) Release() release.Version { return release.AnyOf(v.Minor) }

// Has tells whether the server that wrote the source follows a rule; unknown where the releases of its minor version
// disagree.
func (v Version) Has(r *release.Rule) release.Answer { return v.Release().Has(r) }

// Follows tells whether the server certainly follows a rule.
func (v Version) Follows(r *release.Rule) bool { return v.Has(r).Certain() }

// MayFollow tells whether the version is known and one of its releases follows a rule.
func (v Version) MayFollow(r *release.Rule) bool { return v.Minor > 0 && v.Has(r).Possible() }

// MayLack tells whether the version is known and one of its releases does not follow a rule.
func (v Version) MayLack(r *release.Rule) bool { return v.Minor > 0 && !v.Has(r).Certain() }

// fingerprint reads the marks that date the server which last wrote the source (meta/storageVersion since 3.6,
// meta/term since 3.5, the cluster version before).
func fingerprint(m *Member) Version {
	if m.DB != nil {
		if minor, ok := MinorOf(m.DB.Meta.StorageVersion); ok {
			return newVersion(minor, "meta/storageVersion is "+m.DB.Meta.StorageVersion)
		}
	}
	cluster, has := 0, false
	if m.DB != nil {
		cluster, has = MinorOf(m.DB.Cluster.Version)
	}
	if m.DB != nil && m.DB.Meta.Term != nil {
		if has && release.AnyOf(cluster).Has(release.StorageVersion).Certain() {
			return newVersion(cluster, "meta/term is there, cluster version "+m.DB.Cluster.Version)
		}
		return newVersion(5, "meta/term is there, meta/storageVersion is not")
	}
	if m.HasWAL() {
		for _, s := range m.WAL.Summary.Snapshots {
			if s.ConfState != nil {
				return newVersion(max(5, cluster), "WAL snapshot records carry a ConfState")
			}
		}
	}
	if has {
		return newVersion(cluster, "cluster version "+m.DB.Cluster.Version+", no meta/term")
	}
	if v, ok := MinorOf(m.v2Version()); ok {
		return newVersion(v, "cluster version in the v2 store of the newest .snap file")
	}
	return Version{}
}

func newVersion(minor int, because string) Version {
	return Version{Minor: minor, Text: fmt.Sprintf("3.%d.x", minor), Because: because}
}

// MinorOf returns the minor of a 3.x version such as 3.5.0; false when it is none.
func MinorOf(v string) (int, bool) {
	parts := strings.Split(v, ".")
	if len(parts) < 2 || parts[0] != "3" {
		return 0, false
	}
	n, err := strconv.Atoi(parts[1])
	return n, err == nil
}

func (m *Member) v2Version() string {
	if f := m.NewestSnap(); f != nil && f.V2 != nil {
		return f.V2.Version
	}
	return ""
}
