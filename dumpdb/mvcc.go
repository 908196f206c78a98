package dumpdb

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// statsSink checks the MVCC invariants of each record by itself and of their order; keyPass checks those of a key.
type statsSink struct {
	db    *DB
	st    KVStats
	order revOrder
	bad   violations
	// markers is the last revision at which an empty record can be one of restore --bump-revision.
	markers int64
}

// newStatsSink starts with what buckets meta and lease say. metaErr is why bucket meta may say less than it held.
func newStatsSink(db *DB, comp int64, metaErr error, leasesKnown bool) *statsSink {
	s := &statsSink{db: db, st: KVStats{CompactRev: comp, LeasesChecked: leasesKnown}, order: newRevOrder(comp),
		markers: comp}
	if metaErr != nil {
		s.markers = math.MaxInt64
	}
	return s
}

func (s *statsSink) mergeRecords(p *records) {
	for i := range p.bad {
		s.bad.add(p.bad[i])
	}
	s.st.Bytes += p.bytes
	s.bad.more += p.moreBad
	s.st.Revisions += int64(len(p.bad)) + p.moreBad
	for i := range p.recs {
		s.record(&p.recs[i])
	}
}

// record checks one record against the one before it.
func (s *statsSink) record(r *record) {
	s.st.Revisions++
	if s.st.Revisions == 1 || s.st.FirstRev == (Rev{}) {
		s.st.FirstRev = r.rev
	}
	s.st.LastRev = r.rev
	marker := r.empty && s.marks(r)
	if marker {
		s.st.BumpMarker = r.rev
	}
	if want, ok := s.order.next(r.rev); !ok {
		rule := "contiguous-main"
		if r.rev.Main == want.Main {
			rule = RuleContiguousSub
		}
		s.violate(r, rule, want.String(), r.rev.String())
	}
	if r.unknown {
		s.violate(r, RuleUnknownField, "fields 1 to 6 of mvccpb.KeyValue", "another field")
	}
	if r.tombstone {
		s.st.Tombstones++
	}
	switch {
	case r.empty && !marker:
		s.violate(r, RuleUndecodable, "mvccpb.KeyValue", "an empty value")
	case r.tombstone && r.filled:
		s.violate(r, "tombstone-content", "only a key", "more than the key, as in a put")
	case !r.tombstone && !r.empty:
		s.own(r)
	}
}

// marks reports whether an empty record can be the one of restore --bump-revision, which is alone in its revision and
// comes with the compact revision set to it (etcdutl/snapshot/v3_snapshot.go).
func (s *statsSink) marks(r *record) bool {
	return !r.tombstone && r.rev.Sub == 0 && r.rev.Main <= s.markers
}

// own checks a put by itself.
func (s *statsSink) own(r *record) {
	switch {
	case r.mod != r.rev.Main:
		s.violate(r, "mod-revision", strconv.FormatInt(r.rev.Main, 10), strconv.FormatInt(r.mod, 10))
	case r.create > r.rev.Main || r.create < 1:
		s.violate(r, "create-revision", fmt.Sprintf("from 1 to %d", r.rev.Main), strconv.FormatInt(r.create, 10))
	case (r.version == 1) != (r.create == r.rev.Main):
		s.violate(r, "create-revision", "the mod revision at version 1 only",
			fmt.Sprintf("create revision %d at version %d", r.create, r.version))
	case r.version < 1:
		s.violate(r, "version-chain", positiveVersion, fmt.Sprintf("version %d", r.version))
	}
}

func (s *statsSink) violate(r *record, rule, expected, observed string) {
	s.bad.addOf(s.db, Violation{Place: r.place, Rev: r.rev, Rule: rule, Expected: expected, Observed: observed})
}

// finish completes the numbers with what is known of the keys. Keys without their lease are listed only as far as there
// is room: they alone do not make a history impossible.
func (s *statsSink) finish(keys *keyResult) *KVStats {
	s.st.CurrentRev = max(1, s.st.CompactRev, s.st.LastRev.Main)
	s.st.LiveKeys = keys.live
	s.st.Superseded, s.st.FirstSuperseded = keys.superseded, keys.firstSuperseded
	s.st.Strays, s.st.FirstStray = keys.strays, keys.firstStray
	s.bad.join(&keys.chains)
	for _, v := range keys.leases.list {
		s.bad.add(v)
	}
	s.bad.more += keys.leases.more
	s.bad.sort()
	s.st.Violations, s.st.MoreViolations = s.bad.list, s.bad.more
	return &s.st
}

// keyAt reads the user key of the record at a place again.
func (db *DB) keyAt(at Place) []byte {
	rd := recordReader{db: db, r: db.reader()}
	r, err := rd.at(at)
	if err != nil {
		return nil
	}
	return slices.Clone(r.KV.Key)
}
