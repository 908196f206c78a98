package evidence

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// Version is the etcd minor version that wrote a source, as far as the source shows it.
type Version struct {
	// Minor is the 3.x minor version, 0 if unknown.
	Minor int
	// Text is "3.4.x" or similar, "" if unknown.
	Text string
	// Because names the fact from which it follows.
	Because string
}

// Release returns the version for the table of releases. A source shows the minor version, never the patch release.
func (v Version) Release() release.Version { return release.AnyOf(v.Minor) }

// Named returns the version of Text. Unlike Release, it distinguishes 3.0, whose Minor is 0 too, from an unknown
// version.
func (v Version) Named() release.Version { return release.Of(v.Text) }

// Has reports whether the server that wrote the source follows a rule; unknown if the releases of its minor version
// differ.
func (v Version) Has(r *release.Rule) release.Answer { return v.Release().Has(r) }

// Follows reports whether the server certainly follows a rule.
func (v Version) Follows(r *release.Rule) bool { return v.Has(r).Certain() }

// MayFollow reports whether the version is known and one of its releases follows a rule.
func (v Version) MayFollow(r *release.Rule) bool { return v.Minor > 0 && v.Has(r).Possible() }

// MayLack reports whether the version is known and one of its releases does not follow a rule.
func (v Version) MayLack(r *release.Rule) bool { return v.Minor > 0 && !v.Has(r).Certain() }

// fingerprint determines the version of the server that last wrote the source (meta/storageVersion since 3.6, meta/term
// since 3.5, the cluster version before, also where a newer tool restored the backup).
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
	if has && release.AnyOf(cluster).Has(release.TermInMeta).Excluded() && m.termOfRestore() {
		return newVersion(cluster, "cluster version "+m.DB.Cluster.Version+", and meta/term is that of a restore")
	}
	if m.DB != nil && m.DB.Meta.Term != nil {
		if has && release.AnyOf(cluster).Has(release.StorageVersion).Certain() {
			return newVersion(cluster, "meta/term exists, cluster version "+m.DB.Cluster.Version)
		}
		return newVersion(release.TermInMeta.First().Minor(), "meta/term exists, meta/storageVersion does not")
	}
	if m.HasWAL() {
		for _, s := range m.WAL.Summary.Snapshots {
			if s.ConfState != nil {
				first, because := release.ConfStateInRecord.First().Minor(), "WAL snapshot records have a ConfState"
				if v, ok := MinorOf(m.v2Version()); ok && !has && v > first {
					return newVersion(v, because+", cluster version in the v2 store of the newest .snap file")
				}
				return newVersion(max(first, cluster), because)
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

// restoredTerm is the term of the entries that a restore writes; servers elect a leader in a higher one first.
const restoredTerm = 1

// termOfRestore reports whether meta/term was stored by a restore (etcdutl 3.5 and later) and by no server since,
// though the database has applied entries of higher terms. Servers of 3.4 and older store no term.
func (m *Member) termOfRestore() bool {
	if m.DB == nil || m.DB.Meta.Term == nil || *m.DB.Meta.Term != restoredTerm || !m.HasWAL() {
		return false
	}
	applied := m.ConsistentIndex()
	if m.WAL.TermAt(applied) > restoredTerm {
		return true
	}
	return slices.ContainsFunc(m.WAL.Summary.Snapshots, func(s dumplog.SnapshotRecord) bool {
		return s.Index <= applied && s.Term > restoredTerm
	})
}

func newVersion(minor int, because string) Version {
	return Version{Minor: minor, Text: fmt.Sprintf("3.%d.x", minor), Because: because}
}

// MinorOf returns the minor version of a 3.x version such as 3.5.0; ok is false for any other text.
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
