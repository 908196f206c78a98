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
		case x != "" && y != "" && !mayLag(name, a, b):
			return release.No
		default: // not hashed, or a bucket that only one has
			answer = release.Unknown
		}
	}
	return answer
}

// movesIndex names, for buckets that older servers change without moving the consistent index, from when on they move
// it. Before, such a bucket may differ at one index, as the index stands for all that was applied since it moved.
var movesIndex = map[string]*release.Rule{"lease": release.IndexWithEveryEntry, "alarm": release.IndexWithEveryEntry,
	"auth": release.IndexWithAuth, "authUsers": release.IndexWithAuth, "authRoles": release.IndexWithAuth}

// mayLag reports whether one of the two was written by a server that may change the bucket without moving the index.
func mayLag(bucket string, a, b *Facts) bool {
	rule := movesIndex[bucket]
	for _, f := range []*Facts{a, b} {
		if rule != nil && (f.WroteBy.Etcd == nil || !release.Of(*f.WroteBy.Etcd).Has(rule).Certain()) {
			return true
		}
	}
	return false
}
