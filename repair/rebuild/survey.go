package rebuild

import (
	"context"
	"slices"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// survey is the result of one pass over the logs before anything is executed.
type survey struct {
	base        uint64
	first, last uint64
	// baseTerm is the term of the entry at the base's index, 0 if no log has it.
	baseTerm uint64
	gaps     []Gap
	// parted is the first entry of another history than that of the entry before it, 0 for none.
	parted uint64
	// touches are, by small bucket, the indexes after the base that may change it.
	touches map[string][]uint64
	times   dumplog.Times
	// cluster is the newest cluster version set by an entry, as a minor version.
	cluster release.Version
	// writes are the last ones up to the base's index: the base must have them.
	writes replay.LastWrites
	// unsaved are auth entries right after the base's index; up to 3.4 they may already be in the base.
	unsaved  []uint64
	wroteKey bool
}

func (b *builder) survey(ctx context.Context) error {
	s := &survey{base: b.from.Index, touches: map[string][]uint64{},
		times: dumplog.Times{Near: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), Split: b.o.To.Time}}
	b.sv = s
	next, above := s.base+1, joint{}
	for e, err := range replay.Log(ctx, b.logs) {
		if err != nil {
			return err
		}
		if s.first == 0 {
			s.first = e.Index
		}
		s.last = e.Index
		if s.parted == 0 && above.endsBefore(&e) {
			s.parted = e.Index
		}
		above = joint{e.Index, e.Term, e.Disputed, slices.Clone(e.Holders)}
		s.clusterVersion(e.Req)
		if !b.o.To.Time.IsZero() {
			s.times.Add(e.Entry, e.Req)
		}
		if e.Index <= s.base {
			s.below(&e)
			continue
		}
		if e.Index > next {
			s.gaps = append(s.gaps, Gap{next, e.Index - 1})
		}
		next = e.Index + 1
		s.above(&e)
	}
	return nil
}

// joint is an entry that another one may continue.
type joint struct {
	index, term uint64
	disputed    bool
	holders     []int
}

// endsBefore reports whether the next entry is of a history that parted from this one before: its logs hold another
// entry here, and its term is lower, which no leader's log has.
func (j *joint) endsBefore(e *replay.Entry) bool {
	return e.Index == j.index+1 && e.Term < j.term && j.disputed &&
		!slices.ContainsFunc(e.Holders, func(h int) bool { return slices.Contains(j.holders, h) })
}

func (s *survey) clusterVersion(r *dumplog.Request) {
	set := ""
	switch {
	case r.ClusterVer != nil:
		set = r.ClusterVer.Version
	case r.V2 != nil:
		set, _ = r.V2.ClusterVersion()
	}
	s.cluster = release.Highest(s.cluster, release.AnyOf(release.Of(set).Minor()))
}

func (s *survey) below(e *replay.Entry) {
	if e.Index == s.base {
		s.baseTerm = e.Term
	}
	s.writes.Add(e)
}

func (s *survey) above(e *replay.Entry) {
	for _, bucket := range replay.TouchedBuckets(e.Req) {
		s.touches[bucket] = append(s.touches[bucket], e.Index)
	}
	if replay.WritesKeys(e.Req.Kind) {
		s.wroteKey = true
	}
	if !s.wroteKey && e.Req.Kind.ChangesAuth() {
		s.unsaved = append(s.unsaved, e.Index)
	}
}

// touched reports whether an entry in (lo, hi] may have changed a small bucket.
func (s *survey) touched(bucket string, lo, hi uint64) bool {
	for _, i := range s.touches[bucket] {
		if i > lo && i <= hi {
			return true
		}
	}
	return false
}
