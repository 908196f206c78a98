package surgery

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// building is a change of a WAL folder, whose result is a new folder.
func building(t *testing.T, kind evidence.Kind) *work {
	t.Helper()
	w := workOn(5)
	w.source().Source.Kind = kind
	out, err := datadir.Begin(filepath.Join(t.TempDir(), "new"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.Abandon)
	w.out = out
	return w
}

// TestOpenedSegment: a new segment is named after its number and its first entry. It begins with the last HardState, if
// there was one. The first segment of a log without a snapshot record at index 0 gets one, since etcd opens no log
// without it; other segments and logs that have it get none.
func TestOpenedSegment(t *testing.T) {
	at := func(indexes ...uint64) (out []dumplog.SnapshotRecord) {
		for _, i := range indexes {
			out = append(out, dumplog.SnapshotRecord{Index: i})
		}
		return out
	}
	state := dumplog.HardState{Term: 2, Commit: 4}
	for name, c := range map[string]struct {
		r       rewriter
		snaps   []dumplog.SnapshotRecord
		file    string
		written string
	}{
		"the first": {rewriter{}, at(0), "0000000000000000-0000000000000007.wal", ""},
		"the first, without a record": {rewriter{}, nil, "0000000000000000-0000000000000007.wal",
			"s0"},
		"the first, with a later record": {rewriter{}, at(3, 9), "0000000000000000-0000000000000007.wal", "s0"},
		"one of several records":         {rewriter{}, at(3, 0), "0000000000000000-0000000000000007.wal", ""},
		"the second": {rewriter{seq: 1, firstBad: 1, next: 5}, nil,
			"0000000000000001-0000000000000005.wal", ""},
		"of a purged log": {rewriter{seq: 16}, nil, "0000000000000010-0000000000000007.wal", ""},
		"with a state": {rewriter{seq: 1, firstBad: 1, next: 5, state: state}, nil,
			"0000000000000001-0000000000000005.wal", "h4"},
		"the first, with a state": {rewriter{state: state}, nil, "0000000000000000-0000000000000007.wal", "s0 h4"},
	} {
		r := c.r
		r.w = building(t, evidence.KindWAL)
		r.s = &dumplog.Summary{Segments: []dumplog.Segment{{First: 7}}, Snapshots: c.snaps,
			Metadata: &dumplog.Metadata{MemberID: 1, ClusterID: 2}}
		if err := r.open(); err != nil {
			t.Fatal(err)
		}
		if got := filepath.Base(r.f.Name()); got != c.file || r.seq != c.r.seq+1 {
			t.Errorf("%s: %s, then number %d", name, got, r.seq)
		}
		if f := (fed{r: &r}).end(t); f.written != c.written || r.f != nil {
			t.Errorf("%s: %q, want %q", name, f.written, c.written)
		}
	}
}

// TestSegmentAfterSegment: the segment that follows a new one begins with the entry after it, and its chain continues
// that of the one before.
func TestSegmentAfterSegment(t *testing.T) {
	r := &rewriter{w: building(t, evidence.KindWAL), s: &dumplog.Summary{Segments: []dumplog.Segment{{Name: "a"},
		{Name: "b", First: 9}}, Metadata: &dumplog.Metadata{MemberID: 1, ClusterID: 2}}}
	for _, step := range []struct{ segment, records string }{{"a", "e1 e2"}, {"b", "e3"}} {
		if err := r.enter(step.segment); err != nil {
			t.Fatal(err)
		}
		for word := range strings.FieldsSeq(step.records) {
			if err := r.entry(&dumplog.Record{Data: payload(t, 'e', number(t, word[1:]))}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(r.w.out.Path, "*.wal"))
	if err != nil || len(names) != 2 || filepath.Base(names[1]) != "0000000000000001-0000000000000003.wal" {
		t.Errorf("%v, %v", names, err)
	}
	log, err := dumplog.Open(r.w.out.Path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := log.Scan(t.Context())
	if err != nil || len(s.Damage) > 0 || s.FirstIndex != 1 || s.LastIndex != 3 {
		t.Errorf("%v, damage %v, entries %d to %d", err, s.Damage, s.FirstIndex, s.LastIndex)
	}
}

// TestFirstBadSegment: the log is rewritten from the first segment with damage on, or from the one after a missing one.
func TestFirstBadSegment(t *testing.T) {
	segments := func(seqs ...uint64) (out []dumplog.Segment) {
		for _, n := range seqs {
			out = append(out, dumplog.Segment{Name: fmt.Sprint("s", n), Seq: n})
		}
		return out
	}
	for name, c := range map[string]struct {
		seqs   []uint64
		damage string
		want   int
	}{
		"the first":               {[]uint64{0, 1, 2}, "s0", 0},
		"the second":              {[]uint64{0, 1, 2}, "s1", 1},
		"the last":                {[]uint64{4, 5, 6}, "s6", 2},
		"two of them":             {[]uint64{0, 1, 2}, "s2 s1", 1},
		"a missing one":           {[]uint64{0, 1, 3}, "", 2},
		"damage before a missing": {[]uint64{0, 1, 3}, "s1", 1},
		"damage after a missing":  {[]uint64{0, 2, 3}, "s3", 1},
		"of none that is there":   {[]uint64{3, 4}, "s9", 0},
	} {
		s := &dumplog.Summary{Segments: segments(c.seqs...)}
		for word := range strings.FieldsSeq(c.damage) {
			s.Damage = append(s.Damage, &dumplog.DamageError{Pos: dumplog.Pos{Segment: word}})
		}
		if got := firstBadSegment(s); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestShortLog: a log ends too early if its own database has applied more than the log has.
func TestShortLog(t *testing.T) {
	for index, want := range map[uint64]bool{9: false, 10: false, 11: true} {
		m := workOn(index).source()
		m.WAL = evidence.WAL{Log: &dumplog.Log{}, Summary: dumplog.Summary{LastIndex: 10}}
		if got := endsShort(m); got != want {
			t.Errorf("entries up to 10, %d applied: %v", index, got)
		}
		m.DB.Handle = nil
		if endsShort(m) {
			t.Error("without a database nothing shows what was applied")
		}
	}
}

// TestUsableRecords: a record next to damage stays if its checksum proves it. An entry whose checksum fails stays only
// if it decodes, if no other member has it, and if that was accepted.
func TestUsableRecords(t *testing.T) {
	const crc, entry = dumplog.DamageCRC, dumplog.RecordEntry
	proven, good := dumplog.Record{Data: payload(t, 'e', 7), CRC: dumplog.CRCMatch},
		dumplog.Record{Data: payload(t, 'e', 7), Type: entry}
	state := good
	state.Type = dumplog.RecordState
	for name, c := range map[string]struct {
		rec    dumplog.Record
		kind   dumplog.DamageKind
		has    string
		accept bool
		want   bool
		kept   bool
	}{
		"proven":               {proven, crc, "", false, true, false},
		"proven, cut":          {proven, dumplog.DamagePayload, "", true, false, false},
		"no data":              {dumplog.Record{CRC: dumplog.CRCMatch, Type: entry}, crc, "", true, false, false},
		"unproven":             {good, crc, "", false, false, false},
		"accepted":             {good, crc, "", true, true, true},
		"held by others":       {good, crc, "7", true, false, false},
		"others have the next": {good, crc, "8", true, true, true},
		"other damage":         {good, dumplog.DamageFrame, "", true, false, false},
		"a state":              {state, crc, "", true, false, false},
		"no entry":             {dumplog.Record{Data: []byte{0xff}, Type: entry}, crc, "", true, false, false},
	} {
		r := &rewriter{unproven: map[uint64]bool{}}
		f := feed(t, r, c.has, "")
		if c.accept {
			r.w.o.Accept = []string{AcceptUnproven}
		}
		if got := r.usable(&c.rec, &dumplog.DamageError{Kind: c.kind}); got != c.want || r.unproven[7] != c.kept ||
			(len(r.w.report.Accepted) == 1) != c.kept {
			t.Errorf("%s: %v, unproven %v, accepted %v", name, got, r.unproven, r.w.report.Accepted)
		}
		f.end(t)
	}
}

// TestRecordsOfAnotherMember: what follows metadata of another member or cluster is left out, up to the next segment.
func TestRecordsOfAnotherMember(t *testing.T) {
	own, other := datadirMetadata(t, 1), datadirMetadata(t, 9)
	r := &rewriter{segment: "a", s: &dumplog.Summary{Metadata: &dumplog.Metadata{MemberID: 1, ClusterID: 2}}, next: 5}
	f := feed(t, r, "", "")
	for _, rec := range []dumplog.Record{{Type: dumplog.RecordMetadata, Data: own},
		{Type: dumplog.RecordEntry, Data: payload(t, 'e', 5)}, {Type: dumplog.RecordMetadata, Data: other},
		{Type: dumplog.RecordEntry, Data: payload(t, 'e', 6)}, {Type: dumplog.RecordState, Data: payload(t, 'h', 5)},
		{Type: dumplog.RecordMetadata, Data: own}, {Type: dumplog.RecordEntry, Data: payload(t, 'e', 6)},
		{Type: dumplog.RecordMetadata, Data: []byte{0xff}}, {Type: dumplog.RecordState, Data: payload(t, 'h', 6)},
		{Type: dumplog.RecordSnapshot, Data: payload(t, 's', 6)}} {
		rec.Segment = "a"
		if err := r.record(&rec); err != nil {
			t.Fatal(err)
		}
	}
	if f = f.end(t); f.written != "e5 e6 h6 s6" || r.dropped != 2 {
		t.Errorf("%q, %d left out", f.written, r.dropped)
	}
}

// datadirMetadata is the payload of a metadata record of a member of cluster 2.
func datadirMetadata(t *testing.T, member uint64) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "0000000000000000-0000000000000000.wal")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	l := datadir.NewLogWriter(file, 0)
	l.Metadata(member, 2)
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	log, err := dumplog.Open(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for rec := range log.Records(t.Context()) {
		if rec.Type == dumplog.RecordMetadata {
			return slices.Clone(rec.Data)
		}
	}
	t.Fatal("no metadata was written")
	return nil
}

// TestVoteMayBeLost: damage that may have removed a HardState raises the term above all terms that any member saw, with
// no vote. Damage that removes none, or only entries, does not.
func TestVoteMayBeLost(t *testing.T) {
	// Whether a vote may be lost: where it is not known that an entry is, and where it is.
	for kind, want := range map[dumplog.DamageKind][2]bool{
		dumplog.DamageTornTail: {}, dumplog.DamagePadding: {}, dumplog.DamageIndexGap: {}, dumplog.DamageTermOrder: {},
		dumplog.DamageMixed: {}, dumplog.DamageChain: {}, dumplog.DamageCRC: {true, false},
		dumplog.DamageTail: {true, false}, dumplog.DamagePayload: {true, false}, dumplog.DamageZeroHole: {true, true},
		dumplog.DamageMissingSegment: {true, true}, dumplog.DamageFrame: {true, true},
		dumplog.DamageForeign: {true, true},
	} {
		for i, from := range []uint64{0, 7} {
			term := uint64(6)
			other := peer(3)
			other.DB = &evidence.DB{Handle: &dumpdb.DB{}, Meta: dumpdb.MetaBucket{Term: &term}}
			r := &rewriter{w: workOn(0, other), next: 9, term: 2, state: dumplog.HardState{Term: 2, Vote: 1, Commit: 8},
				s: &dumplog.Summary{Damage: []*dumplog.DamageError{{Kind: dumplog.DamagePadding},
					{Kind: kind, LostFrom: from}}}}
			f := feed(t, r, "", "")
			r.endState()
			f.end(t)
			end, notes := dumplog.HardState{Term: 2, Vote: 1, Commit: 8}, 0
			if want[i] {
				end, notes = dumplog.HardState{Term: 7, Commit: 8}, 1
			}
			if r.state != end || len(r.w.report.Notes) != notes {
				t.Errorf("%s from %d: %+v, %q", kind, from, r.state, r.w.report.Notes)
			}
		}
	}
}
