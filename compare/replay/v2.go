package replay

import (
	"math"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// V2Op is a request of a v2 client in the log.
type V2Op struct {
	Index uint64
	Req   *dumplog.V2Request
}

// VersionSet is a cluster version that was set, in the form of 3.6 or as a v2 request.
type VersionSet struct {
	Index   uint64
	Version string
	Elsewhere
}

// maxV2Ops bounds what is kept of a log full of v2 requests, maxServed the processes per member.
const (
	maxV2Ops  = 10_000
	maxServed = 1000
)

// noteV2 keeps what the v2 store receives apart from the member list: requests of clients and the cluster version.
func (s *Survey) noteV2(it *item) {
	idx := it.entry.Index
	v := it.req.V2
	if v == nil {
		return
	}
	if v.Method == "QGET" || v.Method == "SYNC" || strings.HasPrefix(v.Path, "/0/") {
		return
	}
	if s.V2Writes++; s.V2Writes == 1 {
		s.FirstV2Write = idx
	}
	if len(s.V2) >= maxV2Ops {
		s.V2LeftOut++
		return
	}
	s.V2 = append(s.V2, V2Op{idx, v})
}

// noteVersion notes a cluster version that an entry sets, in the form of 3.6 or as a v2 request.
func (s *Survey) noteVersion(it *item, other Elsewhere) {
	version, set := "", false
	switch r := it.req; {
	case r.ClusterVer != nil:
		version, set = r.ClusterVer.Version, true
	case r.V2 != nil:
		version, set = r.V2.ClusterVersion()
	}
	if set && len(s.Versions) < maxV2Ops {
		s.Versions = append(s.Versions, VersionSet{it.entry.Index, version, other})
	}
}

// lastWithout returns the last entry that a release without a rule may have executed before an upgrade to one that has
// it: the entry that raised the cluster version, since that waits for the last member. It is 0 if there is none, and
// the highest index while the cluster version is still the old one. Version 3.0 is left out, because a new cluster has
// it until all its members are up.
func lastWithout(versions []VersionSet, rule *release.Rule) (last uint64) {
	for _, v := range versions {
		minor, ok := evidence.MinorOf(v.Version)
		switch {
		case !ok || minor == 0:
		case !release.AnyOf(minor).Has(rule).Certain():
			last = math.MaxUint64
		case last == math.MaxUint64:
			last = v.Index
		}
	}
	return last
}

// RanWithout reports whether a release without a rule may have executed an entry on the member at a position, before an
// upgrade or because the member still waits for one.
func (s *Survey) RanWithout(pos int, rule *release.Rule, index uint64) bool {
	return index <= lastWithout(s.VersionsFor(pos), rule)
}

// Served is a process of a member that published itself and then proposed what a client asked for. A server answers
// clients only when it has applied its own publish entry (EtcdServer.publish and ReadyNotify, 3.0 to 3.8), so its log
// held that entry.
type Served struct {
	// Publish is its publish entry, Index the first later request of a client.
	Publish, Index uint64
	ID             RequestID
	What           string
}

// serving is the newest process of a proposer; done once its first request of a client is recorded.
type serving struct {
	publish Start
	done    bool
}

// noteServed records the first request of a client that each process proposed.
func (s *Survey) noteServed(it *item) {
	id := requestID(it.req)
	if it.req.Publishes() != nil {
		s.serving[id.ProposerPrefix()] = &serving{publish: Start{Index: it.entry.Index, ID: id}}
		return
	}
	if !fromClient(it.req) || id == 0 {
		return
	}
	p := s.serving[id.ProposerPrefix()]
	if p == nil || p.done || id.StartMillis() < p.publish.ID.StartMillis() {
		return
	}
	p.done = true
	if m := s.Proposer(id); m != 0 && len(s.Served[m]) < maxServed {
		s.Served[m] = append(s.Served[m], Served{Publish: p.publish.Index, Index: it.entry.Index, ID: id,
			What: s.describe(it.req)})
	}
}

// fromClient reports requests that a server proposes for a client only. A server also proposes lease revokes and
// checkpoints, alarms and compactions by itself.
func fromClient(r *dumplog.Request) bool {
	switch r.Kind {
	case dumplog.KindPut, dumplog.KindDeleteRange, dumplog.KindTxn, dumplog.KindLeaseGrant:
		return true
	}
	return false
}

// maxSpans bounds the list of spans of key writes.
const maxSpans = 10_000

func (s *Survey) noteKeyWrite(it *item) {
	idx := it.entry.Index
	n := len(s.keyWrites)
	switch {
	case !apply.WritesKeys(it.req.Kind):
	case n > 0 && (s.keyWrites[n-1].To+1 >= idx || n >= maxSpans):
		s.keyWrites[n-1].To = idx
	default:
		s.keyWrites = append(s.keyWrites, Gap{idx, idx})
	}
}

// KeyWrite returns the first entry from one index to another, both included, that may write keys; 0 when there is none.
func (s *Survey) KeyWrite(from, to uint64) uint64 {
	for _, g := range s.keyWrites {
		if g.To >= from && g.From <= to {
			return max(g.From, from)
		}
	}
	return 0
}
