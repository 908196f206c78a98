package confirm

import (
	"context"
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// span is a range of indexes without a gap, both ends included.
type span struct{ first, last uint64 }

// termStart is the first index of a term.
type termStart struct{ index, term uint64 }

// survey is the result of one pass over the logs.
type survey struct {
	spans []span
	terms []termStart
	// founder is the conf change of entry 1, nil if the log does not have one there.
	founder *dumplog.ConfChange
	// broken are the entries that no server can execute, in order.
	broken []brokenEntry
	// minors are the 3.x minor versions to which the log raises the cluster version.
	minors []int
	// plain are users with a password in plain text: every server adds its own salt.
	plain map[string]bool
	// urls are the peer URLs in conf changes.
	urls []string
	// touched are, by bucket except key, the entries that may change it.
	touched map[string][]uint64
	// bytes is the total size of the payloads, v2 the number of v2 requests that write keys of the v2 store.
	bytes int64
	v2    int
}

type brokenEntry struct {
	index uint64
	why   string
}

// maxKept bounds the lists of a survey.
const maxKept = 10000

func surveyLogs(ctx context.Context, logs []*evidence.Member) (*survey, error) {
	s := &survey{plain: map[string]bool{}, touched: map[string][]uint64{}}
	for e, err := range replay.Log(ctx, logs) {
		if err != nil {
			return nil, err
		}
		s.add(&e)
	}
	slices.Sort(s.urls)
	s.urls = slices.Compact(s.urls)
	return s, nil
}

func (s *survey) add(e *replay.Entry) {
	if n := len(s.spans); n > 0 && s.spans[n-1].last+1 == e.Index {
		s.spans[n-1].last = e.Index
	} else {
		s.spans = append(s.spans, span{e.Index, e.Index})
	}
	if n := len(s.terms); n == 0 || s.terms[n-1].term != e.Term {
		s.terms = append(s.terms, termStart{e.Index, e.Term})
	}
	s.bytes += int64(len(e.Data))
	if why := unfitEntry(e); why != "" {
		if len(s.broken) < maxKept {
			s.broken = append(s.broken, brokenEntry{e.Index, why})
		}
		return
	}
	s.request(e)
}

// unfitEntry returns why no server can execute an entry, "" if one can.
func unfitEntry(e *replay.Entry) string {
	switch {
	case e.Err != nil:
		return "it cannot be decoded: " + e.Err.Error()
	case e.Req == nil || e.Req.Kind == dumplog.KindUnknown || len(e.Req.Unknown) > 0:
		return "it holds a request that no known release has"
	case e.Req.ConfChangeV2 != nil:
		return "it is a ConfChangeV2, which no etcd executes"
	}
	return ""
}

func (s *survey) request(e *replay.Entry) {
	r := e.Req
	for _, bucket := range replay.TouchedBuckets(r) {
		s.touched[bucket] = append(s.touched[bucket], e.Index)
	}
	switch {
	case r.ConfChange != nil:
		if e.Index == 1 {
			c := *r.ConfChange
			s.founder = &c
		}
		if m := r.ConfChange.Member; m != nil && len(s.urls) < maxKept {
			s.urls = append(s.urls, m.PeerURLs...)
		}
	case r.ClusterVer != nil:
		s.version(r.ClusterVer.Version)
	case r.V2 != nil:
		if v, ok := r.V2.ClusterVersion(); ok {
			s.version(v)
		} else if _, ok := r.V2.MemberAttr(); !ok {
			s.v2++
		}
	case r.Auth != nil && r.Auth.Password != "" && r.Auth.HashedPassword == "" && r.Kind.ChangesAuth():
		s.plain[r.Auth.User] = true
	}
}

func (s *survey) version(text string) {
	if minor, ok := evidence.MinorOf(text); ok && !slices.Contains(s.minors, minor) {
		s.minors = append(s.minors, minor)
	}
}

// reach returns the last index up to which the log has every entry after an index; the index itself if the next entry
// is missing.
func (s *survey) reach(index uint64) uint64 {
	for _, p := range s.spans {
		if p.first <= index+1 && index+1 <= p.last {
			return p.last
		}
	}
	return index
}

// termAt returns the term of an entry, 0 if the log does not have it.
func (s *survey) termAt(index uint64) (term uint64) {
	if !slices.ContainsFunc(s.spans, func(p span) bool { return p.first <= index && index <= p.last }) {
		return 0
	}
	for _, t := range s.terms {
		if t.index > index {
			break
		}
		term = t.term
	}
	return term
}

// brokenBetween returns which entry in (lo, hi] no server can execute; "" if there is none.
func (s *survey) brokenBetween(lo, hi uint64) string {
	for _, b := range s.broken {
		if lo < b.index && b.index <= hi {
			return fmt.Sprintf("no server can execute entry %d: %s", b.index, b.why)
		}
	}
	return ""
}

// touches counts the entries in (lo, hi] that may change a bucket except key.
func (s *survey) touches(bucket string, lo, hi uint64) (n int) {
	for _, i := range s.touched[bucket] {
		if lo < i && i <= hi {
			n++
		}
	}
	return n
}
