package surgery

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// fed is what a rewriter made of records: the entries and commit indexes that it wrote, in order, and what it noted.
type fed struct {
	r       *rewriter
	written string
	hard    dumplog.HardState
}

// feed gives records to a rewriter whose new segment is open: eN is an entry, hN a HardState with a commit index, sN a
// snapshot record, x a payload that does not decode. Other members have the entries of has.
func feed(t *testing.T, r *rewriter, has, records string) fed {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "0000000000000000-0000000000000000.wal"))
	if err != nil {
		t.Fatal(err)
	}
	if r.w == nil {
		r.w = workOn(0)
	}
	if r.s == nil {
		r.s = &dumplog.Summary{}
	}
	r.f, r.log = file, datadir.NewLogWriter(file, 0)
	r.log.Metadata(1, 2)
	r.fill = fill{peers: []*evidence.Member{peer(0)}, to: 1 << 20, cache: map[uint64]*datadir.Entry{}}
	for word := range strings.FieldsSeq(has) {
		n := number(t, word)
		r.cache[n] = &datadir.Entry{Term: 3, Index: n}
	}
	for word := range strings.FieldsSeq(records) {
		rec := &dumplog.Record{Data: []byte{0xff}}
		use := map[byte]func(*dumplog.Record) error{'e': r.entry, 'h': r.hardState, 's': r.snapshotRecord}[word[0]]
		if word[1:] != "x" {
			rec.Data = payload(t, word[0], number(t, word[1:]))
		}
		if err := use(rec); err != nil {
			t.Fatal(err)
		}
	}
	return fed{r: r}
}

// end completes the segment and reads it.
func (f fed) end(t *testing.T) fed {
	t.Helper()
	path := f.r.f.Name()
	if err := f.r.end(); err != nil {
		t.Fatal(err)
	}
	log, err := dumplog.Open(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for rec, err := range log.Records(t.Context()) {
		if err != nil {
			continue // a log that begins with any record
		}
		switch rec.Type {
		case dumplog.RecordEntry:
			e, err := rec.Entry()
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprint("e", e.Index))
		case dumplog.RecordState:
			if f.hard, err = dumplog.DecodeHardState(rec.Data); err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprint("h", f.hard.Commit))
		case dumplog.RecordSnapshot:
			sn, err := dumplog.DecodeSnapshotRecord(rec.Data)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprint("s", sn.Index))
		}
	}
	f.written = strings.Join(out, " ")
	return f
}

func number(t *testing.T, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// payload is that of a record of term 2.
func payload(t *testing.T, kind byte, n uint64) []byte {
	t.Helper()
	if kind == 'h' {
		return datadir.StateData(2, 1, n)
	}
	var b bytes.Buffer
	l := datadir.NewLogWriter(&b, 0)
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	head := b.Len()
	if kind == 'e' {
		l.Entry(&datadir.Entry{Term: 2, Index: n})
	} else {
		l.Snapshot(2, n, nil)
	}
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	// Length, {1 type, 2 crc, 3 data}: the data is the last field, before the padding.
	rec := b.Bytes()[head+8:]
	at := bytes.LastIndexByte(rec[:len(rec)-2], 0x1a)
	return rec[at+2 : at+2+int(rec[at+1])]
}

// TestRewrittenRecords: entries of others close gaps as far as they reach. What follows a gap that stays is left out
// until entries of a later leader begin below it. A HardState never commits what the new log does not have.
func TestRewrittenRecords(t *testing.T) {
	to9 := &dumplog.Summary{Jumps: []dumplog.Jump{{From: 5, To: 9}}}
	for name, c := range map[string]struct {
		r            rewriter
		has, records string
		want         string
		filled       []span
		cut, next    uint64
	}{
		"in order":                   {rewriter{next: 5}, "", "e5 e6", "e5 e6", nil, 0, 7},
		"the first entry":            {rewriter{}, "7 8", "e9", "e9", nil, 0, 10},
		"a gap that is closed":       {rewriter{next: 5}, "5 6 7", "e7", "e5 e6 e7", []span{{5, 6}}, 0, 8},
		"a gap of one":               {rewriter{next: 5}, "5", "e6", "e5 e6", []span{{5, 5}}, 0, 7},
		"a gap that is not":          {rewriter{next: 5}, "6 7", "e8 e9", "", nil, 5, 5},
		"a gap that is closed half":  {rewriter{next: 5}, "5 6", "e8 e9", "e5 e6", []span{{5, 6}}, 7, 7},
		"a later leader":             {rewriter{next: 5}, "5 6", "e8 e6 e7", "e5 e6 e6 e7", []span{{5, 6}}, 0, 8},
		"a later leader at the gap":  {rewriter{next: 5}, "", "e8 e5 e6", "", nil, 5, 5},
		"an entry again":             {rewriter{next: 5}, "", "e5 e6 e5", "e5 e6 e5", nil, 0, 6},
		"an entry that is damaged":   {rewriter{next: 5}, "", "e5 ex e6", "e5 e6", nil, 0, 7},
		"a snapshot of the leader":   {rewriter{next: 5, s: to9}, "", "s9 e10", "s9 e10", nil, 0, 11},
		"a snapshot at the last one": {rewriter{next: 9, s: to9}, "", "s9 e10", "s9 e10", nil, 0, 11},
		"an older snapshot":          {rewriter{next: 10, s: to9}, "", "s9 e10", "s9 e10", nil, 0, 11},
		"a snapshot that is its own": {rewriter{next: 5, s: to9}, "", "s8 e10", "s8", nil, 5, 5},
		"a damaged snapshot":         {rewriter{next: 5, s: to9}, "", "sx e5", "e5", nil, 0, 6},
		"states":                     {rewriter{next: 5}, "", "h3 e5 h5", "h3 e5 h5", nil, 0, 6},
		"a state twice":              {rewriter{next: 5}, "", "h3 h3 e5", "h3 e5", nil, 0, 6},
		"a state of what is lost":    {rewriter{next: 5}, "", "h5", "h4", nil, 0, 5},
		"a state of what there is":   {rewriter{next: 5}, "", "h4", "h4", nil, 0, 5},
		"a state before any entry":   {rewriter{}, "", "h5", "h5", nil, 0, 0},
		"a damaged state":            {rewriter{next: 5}, "", "hx h4", "h4", nil, 0, 5},
	} {
		f := feed(t, &c.r, c.has, c.records).end(t)
		if f.written != c.want || !slices.Equal(f.r.filled, c.filled) || f.r.cut != c.cut || f.r.next != c.next ||
			len(f.r.bridged) > 0 {
			t.Errorf("%s: %q, filled %v, cut %d, next %d, bridged %v", name, f.written, f.r.filled, f.r.cut, f.r.next,
				f.r.bridged)
		}
	}
	// What is in a segment that is copied is only followed.
	r := &rewriter{s: to9}
	for _, word := range []string{"h7", "e4", "s9"} {
		rec := &dumplog.Record{Data: payload(t, word[0], number(t, word[1:]))}
		use := map[byte]func(*dumplog.Record) error{'e': r.entry, 'h': r.hardState, 's': r.snapshotRecord}[word[0]]
		if err := use(rec); err != nil {
			t.Fatal(err)
		}
	}
	if r.next != 10 || r.term != 2 || r.state.Commit != 7 || r.hard != r.state || r.log != nil {
		t.Errorf("copied: %+v", r)
	}
}

// TestBridgedGap: a gap up to the newest raft snapshot stays, since no server reads it; one above it does not.
func TestBridgedGap(t *testing.T) {
	where := filepath.Join(evidencetest.Incident(t, "m-healthy-3.6"), "node1")
	set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: where}}, evidence.Options{NoHashes: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = set.Close() }() // only read
	at := newestUsable(set.Members[0])
	if at < 10 {
		t.Fatalf("the newest raft snapshot is at %d", at)
	}
	for after, want := range map[uint64][]span{0: {{at - 3, at - 1}}, 1: {{at - 3, at}}, 2: nil} {
		r := &rewriter{w: &work{o: &Options{}, report: &Report{}, set: set}, next: at - 4}
		f := feed(t, r, fmt.Sprint(at-4), fmt.Sprint("e", at+after)).end(t)
		if !slices.Equal(r.bridged, want) || (r.cut == 0) != (want != nil) ||
			strings.Contains(f.written, fmt.Sprint("e", at+after)) != (want != nil) {
			t.Errorf("an entry %d after the snapshot: %q, bridged %v, cut %d", after, f.written, r.bridged, r.cut)
		}
		err := r.account()
		gives := strings.Join(r.w.report.GivesUp, "\n")
		if said := fmt.Sprintf("entries %d to %d, which a raft snapshot at index %d covers", at-3, at+after-1,
			at); err !=
			nil || strings.Contains(gives, said) != (want != nil) {
			t.Errorf("an entry %d after the snapshot: gives up %q, %v", after, gives, err)
		}
	}
}

// TestFilledTail: what the log has lost at its end comes from others, as far as something shows that it was there.
func TestFilledTail(t *testing.T) {
	const has, missing = "9 10 11 12 13 14", dumplog.DamageMissingSegment
	damage := func(kind dumplog.DamageKind, from, to uint64) *dumplog.Summary {
		return &dumplog.Summary{Damage: []*dumplog.DamageError{{Kind: kind, LostFrom: from, LostTo: to}}}
	}
	others := func() *work { return workOn(3, peer(12), peer(13)) }
	for name, c := range map[string]struct {
		r    rewriter
		want string
	}{
		"nothing lost":            {rewriter{next: 9}, ""},
		"a range":                 {rewriter{next: 9, s: damage(dumplog.DamageTail, 9, 10)}, "e9 e10"},
		"one":                     {rewriter{next: 9, s: damage(dumplog.DamageTail, 9, 0)}, "e9"},
		"a range before the end":  {rewriter{next: 9, s: damage(dumplog.DamageTail, 8, 10)}, ""},
		"what was committed":      {rewriter{next: 9, s: &dumplog.Summary{MaxCommit: 11}}, "e9 e10 e11"},
		"what was applied":        {rewriter{next: 9, w: workOn(10)}, "e9 e10"},
		"a short log":             {rewriter{next: 9, w: others(), short: true}, "e9 e10 e11 e12 e13"},
		"others":                  {rewriter{next: 9, w: others()}, ""},
		"a last segment":          {rewriter{next: 9, w: others(), s: damage(missing, 9, 0)}, "e9 e10 e11 e12 e13"},
		"a segment in the middle": {rewriter{next: 9, w: others(), s: damage(missing, 8, 0)}, ""},
		"more than others have":   {rewriter{next: 9, w: workOn(20)}, "e9 e10 e11 e12 e13 e14"},
		"what others lack":        {rewriter{next: 8, w: workOn(20)}, ""},
		"a gap before":            {rewriter{next: 9, cut: 9, w: workOn(10)}, ""},
		"no log":                  {rewriter{w: workOn(10)}, ""},
	} {
		f := feed(t, &c.r, has, "")
		before := c.r.next
		c.r.fillTail()
		f = f.end(t)
		filled := c.want != ""
		if f.written != c.want || len(c.r.filled) > 1 || filled && (c.r.filled[0] != span{before, c.r.last()} ||
			c.r.hard.Commit != c.r.last()) || !filled && (len(c.r.filled) > 0 || c.r.hard.Commit > 0) {
			t.Errorf("%s: %q, filled %v, committed %d", name, f.written, c.r.filled, c.r.hard.Commit)
		}
	}
}

// TestEndState: the last HardState has at least the term of the last entry, and commits what the member knew to be
// committed as far as the new log has it. A vote counts for its own term only.
func TestEndState(t *testing.T) {
	state := func(term, vote, commit uint64) dumplog.HardState {
		return dumplog.HardState{Term: term, Vote: dumplog.ID(vote), Commit: commit}
	}
	for name, c := range map[string]struct {
		r       rewriter
		want    dumplog.HardState
		written bool
	}{
		"as it was":          {rewriter{term: 2, state: state(2, 1, 8), hard: state(2, 1, 8)}, state(2, 1, 8), false},
		"more is known":      {rewriter{term: 2, state: state(2, 1, 5), hard: state(2, 1, 7)}, state(2, 1, 7), true},
		"more than there is": {rewriter{term: 2, state: state(2, 1, 5), hard: state(2, 1, 20)}, state(2, 1, 8), true},
		"a later term":       {rewriter{term: 3, state: state(2, 1, 8), hard: state(2, 1, 8)}, state(3, 0, 8), true},
		"a short log": {rewriter{term: 2, state: state(2, 1, 8), hard: state(2, 1, 8), short: true}, state(3, 0, 8),
			true},
	} {
		c.r.next = 9
		f := feed(t, &c.r, "", "")
		c.r.endState()
		f = f.end(t)
		if c.r.state != c.want || (f.written != "") != c.written || c.written && f.hard != c.want {
			t.Errorf("%s: %+v, wrote %q", name, c.r.state, f.written)
		}
	}
}
