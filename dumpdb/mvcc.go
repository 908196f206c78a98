package dumpdb

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// statsSink checks the MVCC invariants record by record.
type statsSink struct {
	db     *DB
	comp   int64
	leases map[int64]struct{}
	// leasesKnown is false if bucket lease could not be read completely.
	leasesKnown bool
	live        liveKeys
	st          KVStats
	prev        Rev
	// gap is the main revision after the last missing one above the compact revision. Records before it to which a
	// later record refers may be lost.
	gap int64
}

func newStatsSink(db *DB, comp int64, leases map[int64]struct{}, known bool) *statsSink {
	return &statsSink{db: db, comp: comp, leases: leases, leasesKnown: known,
		st: KVStats{CompactRev: comp, LeasesChecked: known}, prev: Rev{Main: max(comp, 1), Sub: -1}}
}

func (s *statsSink) mergeRecords(p *records) {
	for i := range p.bad {
		s.violate(p.bad[i])
	}
	s.st.Bytes += p.bytes
	s.st.MoreViolations += p.moreBad
	s.st.Revisions += int64(len(p.bad)) + p.moreBad
	for i := range p.recs {
		s.record(&p.recs[i])
	}
}

// record checks one record against the earlier ones.
func (s *statsSink) record(r *record) {
	s.st.Revisions++
	if s.st.Revisions == 1 || s.st.FirstRev == (Rev{}) {
		s.st.FirstRev = r.rev
	}
	s.st.LastRev = r.rev
	if r.empty {
		s.st.BumpMarker = r.rev
	}
	if r.rev.Main > s.comp {
		s.contiguous(r)
	}
	s.prev = r.rev
	if r.tombstone {
		s.st.Tombstones++
		s.death(r)
		return
	}
	s.life(r)
}

// contiguous checks that the main revisions above the compact revision are contiguous, and the subs within one start at
// 0.
func (s *statsSink) contiguous(r *record) {
	want := Rev{Main: s.prev.Main, Sub: s.prev.Sub + 1}
	if r.rev.Main != s.prev.Main || s.prev.Main <= s.comp {
		want = Rev{Main: max(s.prev.Main, s.comp) + 1}
	}
	if r.rev == want {
		return
	}
	rule := "contiguous-main"
	if r.rev.Main == want.Main {
		rule = "contiguous-sub"
	}
	s.gap = r.rev.Main
	s.violateRecord(r, rule, want.String(), r.rev.String())
}

// life checks a put: its version continues the previous one since the key was created, its create revision is
// unchanged.
func (s *statsSink) life(r *record) {
	if !r.empty {
		s.own(r)
	}
	before, known := s.live.put(r)
	if known {
		s.superseded(r, before.rev)
	}
	switch {
	case r.empty:
	case known && r.rev.Main > s.comp && before.rev.Main >= s.gap:
		if r.version != before.version+1 {
			s.violateRecord(r, "version-chain", fmt.Sprintf("version %d after %s", before.version+1, before.rev),
				fmt.Sprintf("version %d", r.version))
		} else if r.create != before.create {
			s.violateRecord(r, "create-revision", fmt.Sprintf("create revision %d as in %s", before.create, before.rev),
				strconv.FormatInt(r.create, 10))
		}
	case known && r.create == before.create && r.version <= before.version:
		s.violateRecord(r, "version-chain", fmt.Sprintf("a version above %d", before.version),
			fmt.Sprintf("version %d", r.version))
	case !known && r.rev.Main > s.comp && s.gap == 0 && r.version != 1:
		s.violateRecord(r, "version-chain", "version 1, since the key has no earlier record",
			fmt.Sprintf("version %d", r.version))
	}
}

// superseded counts a record at or below the compact revision that another one there replaced: a compaction removes it.
func (s *statsSink) superseded(by *record, rev Rev) {
	if by.rev.Main > s.comp {
		return
	}
	if s.st.Superseded++; s.st.FirstSuperseded == (Rev{}) {
		s.st.FirstSuperseded = rev
	}
}

// own checks a put by itself.
func (s *statsSink) own(r *record) {
	switch {
	case r.mod != r.rev.Main:
		s.violateRecord(r, "mod-revision", strconv.FormatInt(r.rev.Main, 10), strconv.FormatInt(r.mod, 10))
	case r.create > r.rev.Main || r.create < 1:
		s.violateRecord(r, "create-revision", fmt.Sprintf("from 1 to %d", r.rev.Main), strconv.FormatInt(r.create, 10))
	case (r.version == 1) != (r.create == r.rev.Main):
		s.violateRecord(r, "create-revision", "the mod revision at version 1 only",
			fmt.Sprintf("create revision %d at version %d", r.create, r.version))
	case r.version < 1:
		s.violateRecord(r, "version-chain", positiveVersion, fmt.Sprintf("version %d", r.version))
	}
}

func (s *statsSink) death(r *record) {
	known := s.live.remove(r.key)
	switch {
	case known:
		s.superseded(r, r.rev)
	case r.rev.Main < s.comp:
		if s.st.Strays++; s.st.FirstStray == (Rev{}) {
			s.st.FirstStray = r.rev
		}
	}
	if !known && r.rev.Main > s.comp && s.gap == 0 {
		s.violateRecord(r, "tombstone-without-life", "a live key", "no record of the key before")
	}
}

func (s *statsSink) violateRecord(r *record, rule, expected, observed string) {
	s.violateKeyed(Violation{Place: r.place, Rev: r.rev, Rule: rule, Expected: expected, Observed: observed})
}

// violateKeyed adds a violation and fetches the key, of which only the hash was kept.
func (s *statsSink) violateKeyed(v Violation) {
	if len(s.st.Violations) < maxViolations {
		v.Key = s.db.keyAt(v.Place)
	}
	s.violate(v)
}

func (s *statsSink) violate(v Violation) {
	if len(s.st.Violations) >= maxViolations {
		s.st.MoreViolations++
		return
	}
	s.st.Violations = append(s.st.Violations, v)
}

func (s *statsSink) finish() *KVStats {
	s.st.CurrentRev = max(1, s.comp, s.st.LastRev.Main)
	s.st.LiveKeys = int64(s.live.used)
	s.live.all(func(l *lifeState) {
		if _, ok := s.leases[l.lease]; l.lease == 0 || ok || !s.leasesKnown {
			return
		}
		s.violateKeyed(Violation{Place: l.place, Rev: l.rev, Rule: RuleLease,
			Expected: "lease " + ID(l.lease).String() + " in bucket lease", Observed: "none", Lease: l.lease})
	})
	slices.SortStableFunc(s.st.Violations, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Main, b.Main), cmp.Compare(a.Sub, b.Sub), cmp.Compare(a.Offset, b.Offset),
			cmp.Compare(a.Rule, b.Rule))
	})
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
