package apply

import "github.com/etcd-medic/etcd-medic/dumplog"

// maxLeaseTTL is the longest TTL in seconds (server/lease/lessor.go).
const maxLeaseTTL = 9_000_000_000

// CheckGrant returns why a lease is not granted. exists says whether the ID is in use.
func CheckGrant(g *dumplog.LeaseGrantRequest, exists bool) Reason {
	switch {
	case g.ID == 0 || g.TTL > maxLeaseTTL:
		return ReasonInvalid
	case exists:
		return ReasonLeaseExists
	}
	return ReasonNone
}

// CheckCompaction returns why a compaction is not executed, given the compact and the current revision.
func CheckCompaction(c *dumplog.CompactionRequest, compact, current int64) Reason {
	switch {
	case c.Revision <= compact:
		return ReasonCompacted
	case c.Revision > current:
		return ReasonFuture
	}
	return ReasonNone
}
