package evidence

import "github.com/etcd-medic/etcd-medic/release"

// SameContent reports whether two databases at one applied index and one compact revision hold the same, by the hashes
// of their buckets. Different applied indexes prove nothing.
func SameContent(a, b *Facts) release.Answer {
	switch {
	case a == b:
		return release.Yes
	case a.DB == nil || b.DB == nil || a.AppliedIndex != b.AppliedIndex || a.DB.CompactRevision == nil ||
		b.DB.CompactRevision == nil:
		return release.Unknown
	case *a.DB.CompactRevision != *b.DB.CompactRevision:
		return release.Unknown
	}
	answer := release.Yes
	for _, name := range []string{"key", "auth", "authUsers", "authRoles", "lease", "alarm"} {
		x, y := a.DB.Hashes[name], b.DB.Hashes[name]
		switch {
		case x == y && (x != "" || name != "key"):
		case x != "" && y != "" && !(indexLags[name] && mayLag(a, b)):
			return release.No
		default: // not hashed, or a bucket that only one has
			answer = release.Unknown
		}
	}
	return answer
}

// indexLags are buckets that older servers change without moving the consistent index: they may differ at one index.
var indexLags = map[string]bool{"lease": true, "alarm": true}

// mayLag reports whether one of the two was written by a server that does not move the index with every entry.
func mayLag(a, b *Facts) bool {
	for _, f := range []*Facts{a, b} {
		if f.WroteBy.Etcd == nil || !release.Of(*f.WroteBy.Etcd).Has(release.IndexWithEveryEntry).Certain() {
			return true
		}
	}
	return false
}
