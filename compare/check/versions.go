package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

var versionsFit = described(Check{
	ID:    X04,
	Needs: NeedDB,
	Run:   runVersionsFit,
})

func runVersionsFit(in *Input) Result {
	var fs []Finding
	byVersion := map[string][]*evidence.Member{}
	for _, m := range in.Members {
		if !m.HasDB() {
			continue
		}
		c, v := m.DB.Cluster, m.DB.Meta.StorageVersion
		fs = append(fs, in.clusterVersions().impossible(m)...)
		if v != "" {
			byVersion[v] = append(byVersion[v], m)
		}
		ev := Evidence{Member: m.Label(), File: m.DB.File, Bucket: "meta", Key: Bytes("storageVersion"),
			Field: "storageVersion", Observed: v, Show: showDB(m, "meta")}
		if release.Of(v).Above(release.Of(c.Version)) {
			ev.Expected = "at most the cluster version " + c.Version
			fs = append(fs, Finding{Kind: KindStorageVersionTooHigh, Severity: Warning, Members: []string{m.Label()},
				Title: fmt.Sprintf("%s: storage version %s is above cluster version %s", m.Label(), v, c.Version),
				Explanation: "the database was written under a newer cluster version: a downgrade is not finished, " +
					"or the file comes from another time. An older binary refuses it", Evidence: []Evidence{ev}})
		}
		if c.DowngradeEnabled {
			fs = append(fs, Finding{Kind: KindDowngradeUnfinished, Severity: Warning, Members: []string{m.Label()},
				Title: fmt.Sprintf("%s: a downgrade to %s is enabled and not finished", m.Label(), c.DowngradeTarget),
				Explanation: "only binaries of the target line may join; finish the downgrade or cancel it before " +
					"anything else",
				Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "cluster", Key: Bytes("downgrade"),
					Field: "downgrade", Observed: "enabled, target " + c.DowngradeTarget,
					Expected: "not enabled", Show: showDB(m, "cluster")}},
				Remedy: []Remedy{{Text: "finish the downgrade, or cancel it",
					Command: shell.Format("etcdctl downgrade cancel")}}})
		}
	}
	if len(byVersion) > 1 {
		f := Finding{Kind: KindStorageVersionsDiffer, Severity: Warning,
			Title:       "storage versions differ between members",
			Explanation: "an upgrade or downgrade is under way, or a database comes from another time"}
		for _, v := range sortedGroup(byVersion) {
			for _, m := range byVersion[v] {
				f.Members = append(f.Members, m.Label())
				f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), File: m.DB.File, Bucket: "meta",
					Key: Bytes("storageVersion"), Field: "storageVersion", Observed: v, Expected: "one version",
					Show: showDB(m, "meta")})
			}
		}
		fs = append(fs, f)
	}
	return outcome(fs, "")
}

// newerThanKnown: a later release of etcd 3 than this program knows may have written the database; nothing shows
// whether it did.
func newerThanKnown(m *evidence.Member, kind Kind, bucket, key, v string) *Finding {
	if n := release.Of(v); !strings.HasPrefix(v, "3.") || !n.TooNew() {
		return nil
	}
	return &Finding{Kind: kind, Severity: Warning, Class: ClassInconclusive, Members: []string{m.Label()},
		Title: fmt.Sprintf("%s: %s %s is newer than this program knows (3.%d)", m.Label(), key, v,
			release.Newest),
		Explanation: "a later release may have written it, with rules that are not known here; or the row was edited " +
			"or damaged",
		Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: bucket, Key: Bytes(key), Field: key,
			Observed: v, Expected: fmt.Sprintf("up to 3.%d", release.Newest), Show: showDB(m, bucket)}}}
}

// clusterVersions compares the stored cluster version with the rules and with the log.
type clusterVersions struct{ *Input }

func (in *Input) clusterVersions() clusterVersions { return clusterVersions{in} }

// impossible are versions that no server writes, and a cluster version that the log does not set.
func (in clusterVersions) impossible(m *evidence.Member) []Finding {
	var fs []Finding
	bad := func(kind Kind, bucket, key, observed, expected, title string) {
		fs = append(fs, Finding{Kind: kind, Severity: Error, Class: ClassDBDamage, Members: []string{m.Label()},
			Title: m.Label() +
				": " + title,
			Explanation: "no server up to 3." + fmt.Sprint(release.Newest) + " writes this, and each one stops at " +
				"its version check when it starts: the row was edited or damaged",
			Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: bucket, Key: Bytes(key), Field: key,
				Observed: observed, Expected: expected, Show: showDB(m, bucket)}}})
	}
	if v := m.DB.Meta.StorageVersion; v != "" {
		if f := newerThanKnown(m, KindStorageVersionUnknown, "meta", "storageVersion", v); f != nil {
			fs = append(fs, *f)
		} else if n := release.Of(v); !n.Has(release.StorageVersion).Certain() || n.TooNew() ||
			!strings.HasSuffix(v, ".0") || strings.Count(v, ".") != 2 {
			bad(KindStorageVersionImpossible, "meta", "storageVersion", v, "3.6.0 or a later line",
				fmt.Sprintf("storage version %s is one that no server accepts", v))
		}
	}
	v := m.DB.Cluster.Version
	if f := newerThanKnown(m, KindClusterVersionUnknown, "cluster", "clusterVersion", v); f != nil {
		return append(fs, *f)
	}
	if n := release.Of(v); v != "" && (!n.Known() || n.TooNew()) {
		bad(KindClusterVersionImpossible, "cluster", "clusterVersion", v, "a version of a line up to 3."+
			fmt.Sprint(release.Newest),
			fmt.Sprintf("cluster version %s is one that no server accepts", v))
		return fs
	}
	if fs = append(fs, in.againstLog(m)...); len(fs) == 0 {
		fs = versionBelowStorage(m)
	}
	return fs
}

// versionBelowStorage compares the cluster version with the storage version. A server sets the storage version to the
// line of the cluster version (Monitor.UpdateStorageVersionIfNeeded, 3.6 and later), and a downgrade lowers the cluster
// version by one line before the storage version follows.
func versionBelowStorage(m *evidence.Member) []Finding {
	stored, v := release.Of(m.DB.Meta.StorageVersion), m.DB.Cluster.Version
	next := release.Of(v).Next()
	if stored.Minor() == 0 || next.Known() && !stored.Above(next) ||
		m.RowsHidden("cluster", "meta") {
		return nil
	}
	return []Finding{{Kind: KindClusterVersionTooLow, Severity: Error, Class: ClassMembership,
		Members: []string{m.Label()},
		Title: fmt.Sprintf("%s: the cluster version is %s, the storage version %s", m.Label(), orText(v, "absent"),
			m.DB.Meta.StorageVersion),
		Explanation: "servers set the storage version to the cluster version, and a downgrade lowers the cluster " +
			"version by one line: the row was edited or damaged. Which requests the servers send, and which binaries " +
			"may join, follows from it",
		Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "cluster", Key: Bytes("clusterVersion"),
			Field: "cluster version", Observed: orText(v, "absent"),
			Expected: m.DB.Meta.StorageVersion + ", or the minor version before it", Show: showDB(m, "cluster")}}}}
}

// againstLog compares the cluster version with the last one that the log sets, or else with the v2 store of the
// newest snapshot.
func (in clusterVersions) againstLog(m *evidence.Member) []Finding {
	if in.Replay == nil || in.Replay.Survey == nil {
		return nil
	}
	v := m.DB.Cluster.Version
	set := in.Replay.Survey.VersionsFor(slices.Index(in.Members, m))
	want, index := versionByLog(set, m.AppliedMax)
	from := fmt.Sprintf("entry %d", index)
	if snap := m.NewestSnap(); index == 0 && snap != nil && snap.V2 != nil {
		want, index, from = snap.V2.Version, snap.Index, "the v2 store of "+snap.File
	}
	if want == "" || index == 0 || index > m.AppliedMin || release.Of(want).Minor() == release.Of(v).Minor() ||
		!in.Replay.Covers(index, m.AppliedMin) || v == "" && m.RowsHidden("cluster") {
		return nil
	}
	if later := laterVersion(set, m.AppliedMax, v); later > 0 {
		return []Finding{in.aboveIndex(m, v, later)}
	}
	return []Finding{{Kind: KindClusterVersionAgainstLog, Severity: Error, Class: ClassMembership,
		Members: []string{m.Label()},
		At:      At{Term: in.Members.logs().termAt(index), Index: index},
		Title:   fmt.Sprintf("%s: the cluster version is %s, %s has %s", m.Label(), orText(v, "absent"), from, want),
		Explanation: "which requests the servers send, and which binaries may join, follows from it: the row was " +
			"edited or damaged",
		Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "cluster", Key: Bytes("clusterVersion"),
			Field: "cluster version against the log", Observed: orText(v, "absent"),
			Expected: fmt.Sprintf("%s, of %s", want, from), Show: showDB(m, "cluster")}}}}
}

// laterVersion is the first entry above an index that sets the cluster version to a line, 0 if there is none.
func laterVersion(set []replay.VersionSet, applied uint64, version string) uint64 {
	for _, v := range set {
		if v.Index > applied && release.Of(v.Version).Minor() == release.Of(version).Minor() {
			return v.Index
		}
	}
	return 0
}

// aboveIndex says that the cluster version is one that an entry above the consistent index sets.
func (in clusterVersions) aboveIndex(m *evidence.Member, version string, index uint64) Finding {
	return Finding{Kind: KindClusterVersionAboveIndex, Severity: Error, Class: ClassLatentDivergence,
		Members: []string{m.Label()},
		At:      At{Term: in.Members.logs().termAt(index), Index: index},
		Title: fmt.Sprintf("%s: the cluster version is that of entry %d, the consistent index is %d", m.Label(), index,
			m.ConsistentIndex()),
		Explanation: "the index was not stored with the data, or was lowered; the next start applies that entry and " +
			"those before it a second time",
		Evidence: []Evidence{{Member: m.Label(), File: m.DB.File, Bucket: "cluster", Key: Bytes("clusterVersion"),
			Field: "cluster version against the log", Observed: version,
			Expected: fmt.Sprintf("that of an entry up to %d", m.AppliedMax), Show: showDB(m, "cluster")}}}
}

var noV2Content = described(Check{
	ID:  M13,
	Run: runNoV2Content,
})

func runNoV2Content(in *Input) Result {
	var fs []Finding
	checked := in.Replay != nil && in.Replay.Survey != nil && in.Replay.Survey.V2Writes > 0
	for _, m := range in.Members {
		s := m.NewestSnap()
		if s == nil || s.V2 == nil {
			continue
		}
		checked = true
		if len(s.V2.UserKeys) == 0 {
			continue
		}
		f := Finding{Kind: KindV2KeysHeld, Severity: Warning, Members: []string{m.Label()},
			At: At{Term: s.Term, Index: s.Index},
			Title: fmt.Sprintf("%s: the v2 store holds %s of users", m.Label(),
				plural.Of(len(s.V2.UserKeys), "key", "keys")),
			Explanation: "they were written through the v2 API; 3.6 and later do not start on them"}
		for _, k := range s.V2.UserKeys {
			in.add(&f, func() Evidence {
				return Evidence{Member: m.Label(), File: s.File, Key: Bytes(k), Field: "v2 key",
					Observed: "present", Expected: "no key outside of etcd's own", Show: showLogAs(m, "--snaps")}
			})
		}
		fs = append(fs, f)
	}
	if n, first := in.v2Lists().behindLog(); n > 0 {
		fs = append(fs, Finding{Kind: KindV2RequestsInLog, Severity: Warning, At: At{Index: first},
			Title: fmt.Sprintf("%s in the log after the newest snapshots, the first at index %d",
				plural.Of(n, "request of the v2 API is", "requests of the v2 API are"), first),
			Members: in.Members.labels(),
			Explanation: "what they wrote is in the v2 store after a restart; 3.6 and later do not start on such " +
				"content",
			Evidence: []Evidence{{Field: "v2 request", Observed: fmt.Sprintf("entry %d", first),
				Expected: "no request outside of etcd's own", Show: showLog(in.Members[0], first)}}})
	}
	if !checked {
		return Result{Reason: "no source has a snapshot file with a v2 store"}
	}
	return outcome(fs, "")
}

// behindLog counts the requests of v2 clients after the oldest of the members' newest snapshots. The store of the
// snapshot includes the effect of earlier ones.
func (in v2Lists) behindLog() (n int, first uint64) {
	if in.Replay == nil || in.Replay.Survey == nil {
		return 0, 0
	}
	from := uint64(1<<64 - 1)
	for _, m := range in.Members {
		if !m.HasWAL() {
			continue
		}
		at := uint64(0)
		if s := m.NewestSnap(); s != nil && s.V2 != nil {
			at = s.Index
		}
		from = min(from, at)
	}
	for _, op := range in.Replay.Survey.V2 {
		if op.Index > from {
			if n++; n == 1 {
				first = op.Index
			}
		}
	}
	if n > 0 {
		n += in.Replay.Survey.V2LeftOut
	}
	return n, first
}
