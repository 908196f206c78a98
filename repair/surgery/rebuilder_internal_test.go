package surgery

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/refusal"
)

// wantRefusal wants an error that refuses with a reason and names a flag; "" wants none.
func wantRefusal(t *testing.T, what string, err error, flag, reason string) {
	t.Helper()
	var r *refusal.Error
	if reason == "" {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		return
	}
	if !errors.As(err, &r) || r.Flag != flag || !strings.Contains(r.Reason, reason) {
		t.Errorf("%s: %v, want %q with %q", what, err, reason, flag)
	}
}

// TestCompleteness: what a new database lacks, or may lack, needs consent. A revision that was found again may lack its
// last records, and below the compact revision gaps are normal. So only another database that reaches the place shows
// that nothing is missing there.
func TestCompleteness(t *testing.T) {
	lost := func(from, to int64) []*dumpdb.DamageError {
		d := &dumpdb.DamageError{Bucket: "key"}
		if from > 0 {
			d.FirstKey = dumpdb.Rev{Main: from}.Bytes()
		}
		if to > 0 {
			d.LastKey = dumpdb.Rev{Main: to + 1}.Bytes()
		}
		return []*dumpdb.DamageError{d}
	}
	again, open, anywhere := lost(6, 9), lost(6, 0), []*dumpdb.DamageError{{}}
	// Two members without a database, and one with a database.
	none := []*evidence.Member{peer(1), peer(2)}
	at := func(index uint64, current, compacted int64) []*evidence.Member {
		m := peer(index)
		m.DB = &evidence.DB{Handle: &dumpdb.DB{}, Meta: dumpdb.MetaBucket{ConsistentIndex: &index},
			KV: &dumpdb.KVStats{CurrentRev: current, CompactRev: compacted}}
		return append(none, m)
	}
	for name, c := range map[string]struct {
		b          rebuilder
		peers      []*evidence.Member
		says       string
		gives, did string
		notes      int
	}{
		"whole": {b: rebuilder{last: 20, compact: 5}},
		"versions": {b: rebuilder{conflicts: 2}, says: "2 records were found in several versions",
			notes: 1},
		"versions, and logs": {b: rebuilder{conflicts: 2}, peers: none, notes: 1,
			says: "2 records were found in several versions"},
		"versions, and others": {b: rebuilder{conflicts: 2, last: 20}, peers: at(5, 20, 4), notes: 1},
		"a hole": {b: rebuilder{holes: []span{{7, 8}}, last: 20},
			says: "revisions 7 to 8 are in no page", gives: "the records of revisions 7 to 8"},
		"a hole, and others": {b: rebuilder{holes: []span{{7, 8}}, last: 20}, peers: none, says: "are in no page",
			gives: "the records of revisions 7 to 8"},
		"a bump": {b: rebuilder{holes: []span{{7, 19}}, last: 20, compact: 20}},
		"a bump and a hole": {b: rebuilder{holes: []span{{3, 3}, {7, 19}}, last: 20, compact: 20},
			says: "3, 7 to 19 are in no page", gives: "the records of revisions 3, 7 to 19"},
		"a hole before the end": {b: rebuilder{holes: []span{{7, 18}}, last: 20, compact: 20},
			says: "7 to 18 are in no page", gives: "the records of revisions 7 to 18"},
		"a bump, not compacted": {b: rebuilder{holes: []span{{7, 19}}, last: 20, compact: 19},
			says: "7 to 19 are in no page", gives: "the records of revisions 7 to 19"},
		"undecodable": {b: rebuilder{undecodable: 1}, says: "1 record of bucket key does not decode",
			gives: "1 record of bucket key that does not decode"},
		"undecodable and a hole": {b: rebuilder{undecodable: 1, holes: []span{{7, 8}}, last: 20},
			says:  "revisions 7 to 8 are in no page",
			gives: "the records of revisions 7 to 8\n1 record of bucket key that does not decode"},
		"a part": {b: rebuilder{parts: []missingPart{{dumpdb.Rev{Main: 7}, dumpdb.Rev{Main: 7, Sub: 1}}}, last: 20},
			says:  "records 7.0 to 7.1 of transactions with several writes are in no page",
			gives: "the records 7.0 to 7.1 of transactions with several writes"},
		"found again": {b: rebuilder{damage: again, last: 20, compact: 5},
			says: "between revisions 6 and 9", notes: 1},
		"found again, and shown": {b: rebuilder{damage: again, last: 20, compact: 5,
			shown: map[*dumpdb.DamageError]bool{again[0]: true}}},
		"one is not shown": {b: rebuilder{damage: append(again, lost(11, 12)...), last: 20, compact: 5,
			shown: map[*dumpdb.DamageError]bool{again[0]: true}}, says: "between revisions 11 and 12", notes: 1},
		"found again, and logs": {b: rebuilder{damage: again, last: 20, compact: 5}, peers: none,
			says: "between revisions 6 and 9", notes: 1},
		"found again, and others": {b: rebuilder{damage: again, last: 20, compact: 5}, peers: at(5, 20, 4), notes: 2},
		"others that end before": {b: rebuilder{damage: again, last: 20, compact: 5}, peers: at(4, 8, 4),
			says: "between revisions 6 and 9", notes: 1},
		"others that are compacted": {b: rebuilder{damage: again, last: 20, compact: 5}, peers: at(5, 21, 21),
			says: "between revisions 6 and 9", notes: 1},
		"the second without others": {b: rebuilder{damage: append(again, lost(11, 0)...), last: 20, compact: 5},
			peers: at(4, 10, 4), says: "between revisions 11 and the end", notes: 2},
		"beyond the last": {b: rebuilder{damage: lost(6, 21), last: 20, compact: 5},
			says: "between revisions 6 and 21", notes: 1},
		"at the compaction": {b: rebuilder{damage: lost(5, 9), last: 20, compact: 5},
			says: "between revisions 5 and 9", notes: 1},
		"open": {b: rebuilder{damage: lost(6, 0), last: 20, compact: 5},
			says: "between revisions 6 and the end", notes: 1},
		"open, and ended": {b: rebuilder{damage: open, last: 20, compact: 5, ended: true,
			shown: map[*dumpdb.DamageError]bool{open[0]: true}}},
		"open, and the same entry": {b: rebuilder{damage: open, last: 20, compact: 5}, peers: at(5, 20, 4), notes: 2},
		"open, and an older entry": {b: rebuilder{damage: open, last: 20, compact: 5}, peers: at(4, 20, 4),
			says: "between revisions 6 and the end", notes: 1},
		"open, and a later entry": {b: rebuilder{damage: open, last: 20, compact: 5}, peers: at(6, 20, 4), notes: 2},
		"open, and a later revision": {b: rebuilder{damage: open, last: 20, compact: 5}, peers: at(6, 21, 4),
			says: "between revisions 6 and the end", notes: 1},
		"below it, and ended": {b: rebuilder{damage: lost(5, 9), last: 20, compact: 5, ended: true},
			says: "between revisions 5 and 9", notes: 1},
		"anywhere, and ended": {b: rebuilder{damage: anywhere, last: 20, compact: -1, ended: true,
			shown: map[*dumpdb.DamageError]bool{anywhere[0]: true}}},
		"anywhere": {b: rebuilder{damage: []*dumpdb.DamageError{{}}, last: 20, compact: -1},
			says: "somewhere in bucket key", notes: 1},
		"anywhere of compacted": {b: rebuilder{damage: []*dumpdb.DamageError{{}}, last: 20, compact: 5,
			ended: true}, says: "somewhere in bucket key", notes: 1},
		"anywhere, and logs": {b: rebuilder{damage: anywhere, last: 20, compact: -1}, peers: none,
			says: "somewhere in bucket key", notes: 1},
		"anywhere, and others": {b: rebuilder{damage: anywhere, last: 20, compact: -1}, peers: at(5, 20, -1),
			notes: 2},
		"from lost pages": {b: rebuilder{salvaged: 3, last: 20},
			did: "3 of the records come from pages that the tree no longer reaches"},
		"filled": {b: rebuilder{filled: []span{{7, 7}}, from: "the database of b", last: 20},
			did: "the records of revisions 7 were taken from the database of b"},
		"no replay": {b: rebuilder{holes: []span{{7, 8}},
			log: replayedDB{why: errors.New("no log was given")}},
			says:  "in no page, and the log cannot be replayed (no log was given)",
			gives: "the records of revisions 7 to 8", notes: 1},
	} {
		c.b.w, c.b.ctx, c.b.log.tried = workOn(5, c.peers...), t.Context(), true
		wantRefusal(t, name, c.b.account(), AcceptLostRevisions, c.says)
		r := c.b.w.report
		if strings.Join(r.GivesUp, "\n") != c.gives || len(r.Notes) != c.notes || c.did != "" &&
			!slices.Contains(r.Did, c.did) || c.did == "" && len(r.Did) != 1 {
			t.Errorf("%s: gives up %q, notes %q, did %q", name, r.GivesUp, r.Notes, r.Did)
		}
	}
}

// TestAlarmsOfOthers: an alarm is cleared on one member only where no other voter has it, or may have it.
func TestAlarmsOfOthers(t *testing.T) {
	alarm := dumpdb.Alarm{MemberID: 7, Type: 1}
	other := func(id dumplog.ID, alarms ...dumpdb.Alarm) *evidence.Member {
		return &evidence.Member{Source: &evidence.Source{Name: "other"}, MemberID: id,
			DB: &evidence.DB{Handle: &dumpdb.DB{}, Alarms: alarms}}
	}
	logOnly := peer(9)
	logOnly.MemberID = 2
	for name, c := range map[string]struct {
		peers  []*evidence.Member
		voters []dumplog.ID
		// bucket are the voters where raft's own list is not known.
		bucket []dumplog.ID
		says   string
	}{
		"alone":     {nil, []dumplog.ID{1}, nil, ""},
		"all clean": {[]*evidence.Member{other(2), other(3)}, []dumplog.ID{1, 2, 3}, nil, ""},
		"one has it": {[]*evidence.Member{other(2), other(3, alarm)}, []dumplog.ID{1, 2, 3}, nil,
			"other has the alarm of member 7 too"},
		"one is not there": {[]*evidence.Member{other(2)}, []dumplog.ID{1, 2, 3}, nil,
			"member 3 may have the alarm too"},
		"one without content": {[]*evidence.Member{logOnly, other(3)}, []dumplog.ID{1, 2, 3}, nil,
			"member 2 may have the alarm too"},
		"by the bucket": {[]*evidence.Member{other(2)}, nil, []dumplog.ID{1, 2, 4},
			"member 4 may have the alarm too"},
		"raft's list counts": {[]*evidence.Member{other(2)}, []dumplog.ID{1, 2}, []dumplog.ID{1, 2, 4}, ""},
		"another alarm": {[]*evidence.Member{other(2, dumpdb.Alarm{MemberID: 7, Type: 2})}, []dumplog.ID{1,
			2}, nil, ""},
	} {
		w := workOn(5, c.peers...)
		m := w.source()
		m.MemberID, m.DB.Alarms = 1, []dumpdb.Alarm{alarm}
		m.Membership.Voters, m.Membership.RaftKnown, m.Membership.Bucket = c.voters, c.voters != nil, c.bucket
		edits, err := clearAlarms(t.Context(), &Meta{ClearAlarms: []AlarmRef{{Member: 7, Kind: 1}}}, w)
		wantRefusal(t, name, err, AcceptDivergence, c.says)
		if (len(edits) == 1) != (c.says == "") {
			t.Errorf("%s: %d edits", name, len(edits))
		}
	}
}

// TestProvenPeer: rows are those of a member that the diagnosis ranks best, if it has a sound database at the same
// index.
func TestProvenPeer(t *testing.T) {
	at := func(name string, index uint64) *evidence.Member {
		return &evidence.Member{Source: &evidence.Source{Name: name}, DB: &evidence.DB{Handle: &dumpdb.DB{},
			Meta: dumpdb.MetaBucket{ConsistentIndex: &index}}}
	}
	damaged := at("b", 5)
	damaged.DB.KVDamaged = true
	logOnly := peer(9)
	logOnly.Source.Name = "b"
	best := func(names ...string) *compare.Best { return &compare.Best{Members: names} }
	for name, c := range map[string]struct {
		best  *compare.Best
		peers []*evidence.Member
		says  string
	}{
		"the best":   {best("b"), []*evidence.Member{at("a", 5), at("b", 5)}, ""},
		"one of two": {best("c", "b"), []*evidence.Member{at("a", 5), at("b", 5)}, ""},
		"no best": {nil, []*evidence.Member{at("b", 5)},
			"does not call another member better than source"},
		"the source": {best("b", "source"), []*evidence.Member{at("b", 5)},
			"does not call another member better"},
		"another member":        {best("c"), []*evidence.Member{at("b", 5)}, "calls none of them best"},
		"a damaged one":         {best("b"), []*evidence.Member{damaged}, "calls none of them best"},
		"one without a content": {best("b"), []*evidence.Member{logOnly}, "calls none of them best"},
		"another index":         {best("b"), []*evidence.Member{at("b", 6)}, "b is at entry 6, the source at 5"},
	} {
		w := workOn(5, c.peers...)
		w.before = &compare.Report{Best: c.best}
		p, between, err := w.provenPeer(t.Context())
		wantRefusal(t, name, err, "", c.says)
		if (p != nil && p.Label() == "b" && len(between) == 0) != (c.says == "") {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestLossOfATransaction: the last transaction comes back from the log, as far as the log reaches.
func TestLossOfATransaction(t *testing.T) {
	for name, c := range map[string]struct {
		was, now    uint64
		first       uint64
		minor       int
		says, gives string
		flag        string
		notes       int
	}{
		"none before": {0, 9, 0, 5, "has no consistent index", "", "", 0},
		"later entries": {7, 9, 0, 5, "",
			"the effect of entries 8 to 9, until the server applies it again from its log", "", 0},
		"the same entries": {9, 9, 0, 5, "", "", "", 0},
		"an unread one":    {7, 0, 0, 5, "", "", "", 1},
		"up to 3.4": {9, 9, 0, 4, "are applied again, even if they took effect before", "", AcceptDivergence,
			0},
		"unknown": {9, 9, 0, 0, "", "", "", 0},
		"no raft snapshot": {7, 9, 30, 5, "",
			"the effect of entries 8 to 9, until the server applies it again from its log", "", 0},
	} {
		w := workOn(5)
		w.source().Version.Minor = c.minor
		if c.first > 0 {
			w.source().WAL.Summary.FirstIndex, w.source().WAL.Summary.LastIndex = c.first, c.first+9
		}
		wantRefusal(t, name, previousLoss(w, c.was, c.now), c.flag, c.says)
		if r := w.report; strings.Join(r.GivesUp, "\n") != c.gives || len(r.Notes) != c.notes {
			t.Errorf("%s: gives up %q, notes %q", name, r.GivesUp, r.Notes)
		}
	}
}

// TestLogAccount: what became of the log is said; records of another member's segments are given up.
func TestLogAccount(t *testing.T) {
	segments := []dumplog.Segment{{Name: "0-0.wal"}, {Name: "1-5.wal"}}
	r := &rewriter{w: workOn(5), s: &dumplog.Summary{Segments: segments}, next: 6}
	wantRefusal(t, "nothing written", r.account(), "", "nothing of the log could be written")
	for name, c := range map[string]struct {
		r          rewriter
		did, gives string
	}{
		"rewritten": {rewriter{firstBad: 1},
			"the log is rewritten from segment 1-5.wal on, with a new CRC chain; it ends at index 5", ""},
		"continued": {rewriter{firstBad: 2},
			"the log continues in a new segment, because its last one is missing; it ends at index 5", ""},
		"foreign": {rewriter{firstBad: 1, dropped: 1}, "",
			"1 record of segments that belong to another member or cluster"},
	} {
		f := feed(t, &rewriter{}, "", "")
		c.r.w, c.r.s, c.r.next, c.r.log = workOn(5), r.s, 6, f.r.log
		if err := f.r.end(); err != nil {
			t.Fatal(err)
		}
		err := c.r.account()
		if rep := c.r.w.report; err != nil || c.did != "" && !slices.Equal(rep.Did, []string{c.did}) ||
			strings.Join(rep.GivesUp, "\n") != c.gives {
			t.Errorf("%s: %v, did %q, gives up %q", name, err, rep.Did, rep.GivesUp)
		}
	}
}
