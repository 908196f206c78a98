package replay

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestAlteredRecords: records that were changed at rest contradict the entry that made them; what came after it worked
// on what it did write.
func TestAlteredRecords(t *testing.T) {
	t.Run("a tombstone is gone, and a later delete could have left the rest", func(t *testing.T) {
		newBench(t, 6, -1, rec(2, 0, "a", "1"), rec(3, 0, "b", "2"), rec(4, 0, "c", "3"), tomb(5, 0, "a"),
			tomb(5, 1, "b"), rec(6, 0, "a", "4"), rec(7, 0, "b", "5"),
			tomb(8, 0, "a"), tomb(8, 1, "b"), rec(9, 0, "d", "6"), rec(10, 0, "e", "7")).
			log(put("a", "1"), put("b", "2"), put("c", "3"), del("a", "z"),
				txn(cmpMod("a", 0), []dumplog.RequestOp{putOp("a", "4")}, nil), put("b", "5"),
				del("a", "c"), put("d", "6"), put("e", "7"), del("c", "")).
			want("applied", "applied", "applied", "contradicted", "applied", "applied", "applied", "applied", "applied",
				"no-effect")
	})
	t.Run("a value", func(t *testing.T) {
		is := []dumplog.Compare{{Target: apply.TargetValue, Result: apply.ResultEqual, Key: []byte("a"),
			Value: []byte("1")}}
		newBench(t, 6, -1, rec(2, 0, "a", "X"), rec(3, 0, "b", "2"), rec(4, 0, "c", "3")).
			log(put("a", "1"), txn(is, []dumplog.RequestOp{putOp("b", "2")}, nil), put("c", "3")).
			want("contradicted", "applied", "applied")
	})
	t.Run("a key, and a later put could have left the record", func(t *testing.T) {
		newBench(t, 6, -1, rec(2, 0, "z", "1"), rec(3, 0, "b", "2"), rec(4, 0, "c", "3"), rec(5, 0, "z", "1")).
			log(put("a", "1"), put("b", "2"), put("c", "3"), put("z", "1"), del("a", "")).
			want("contradicted", "applied", "applied", "applied", "missing")
	})
	byUser := func(r *dumplog.Request) *dumplog.Request {
		r.Header.Username = "app" // what a user asks for may be refused
		return r
	}
	keepValue := put("a", "")
	keepValue.Put.IgnoreValue = true
	t.Run("a value, and a later put that keeps it could have left the record", func(t *testing.T) {
		newBench(t, 6, -1, rec(2, 0, "a", "X"), rec(3, 0, "b", "2"), record3(4, 2, 2, "a", "1"), rec(5, 0, "c", "3")).
			log(byUser(put("a", "1")), byUser(put("b", "2")), byUser(keepValue), byUser(put("c", "3"))).
			want("contradicted", "applied", "applied", "applied")
	})
	t.Run("an entry of a user that took no effect, and a later one of its key", func(t *testing.T) {
		newBench(t, 6, -1, rec(2, 0, "a", "2"), rec(3, 0, "b", "3"), rec(4, 0, "c", "3")).
			log(byUser(put("a", "1")), byUser(put("a", "2")), byUser(put("b", "3")), byUser(put("c", "3"))).
			want("missing", "applied", "applied", "applied")
	})
	t.Run("an entry that took no effect is missing", func(t *testing.T) {
		newBench(t, 6, -1, rec(2, 0, "b", "2"), rec(3, 0, "c", "3"), rec(4, 0, "a", "1")).
			log(put("a", "1"), put("b", "2"), put("c", "3"), put("a", "1")).
			want("missing", "applied", "applied", "applied")
	})
}

// TestKeptValueNeedsTheKey: a put that keeps value or lease did not write the first version of a key, in a transaction
// either.
func TestKeptValueNeedsTheKey(t *testing.T) {
	first, second := &group{records: []record{rec3("a", 1)}}, &group{records: []record{rec3("a", 2)}}
	for name, edit := range map[string]func(p *dumplog.PutRequest){
		"plain": func(*dumplog.PutRequest) {}, "value": func(p *dumplog.PutRequest) { p.IgnoreValue = true },
		"lease": func(p *dumplog.PutRequest) { p.IgnoreLease = true },
	} {
		r := put("a", "1")
		edit(r.Put)
		for _, req := range []*dumplog.Request{r, txn(nil, []dumplog.RequestOp{{Put: r.Put}}, nil)} {
			if got := couldWrite(req, first); got != (name == "plain") || !couldWrite(req, second) {
				t.Errorf("%s, %s: wrote the first version %t", name, req.Kind, got)
			}
		}
	}
}

// rec3 is a record with this version and value 1.
func rec3(key string, version int64) record {
	return record{key: key, version: version, vhash: apply.SumOf([]byte("1"))}
}

// TestPromiseOfDisputedEntry: where logs hold different entries of one term, the proposer's may be the altered one.
func TestPromiseOfDisputedEntry(t *testing.T) {
	own, other := Outcome{State: Applied, Sig: 7}, Outcome{State: Applied, Sig: 5}
	bad := Outcome{State: Missing, Sig: 9}
	for name, c := range map[string]struct {
		outcomes []Outcome
		sig      uint64
		known    bool
	}{
		"most members decide":           {[]Outcome{own, other, other}, 5, true},
		"one against one":               {[]Outcome{own, other}, 0, false},
		"one against one that has none": {[]Outcome{own, {State: NoEffect}}, 0, false},
		"one whose records differ":      {[]Outcome{bad, other}, 5, true},
		"no database shows one":         {[]Outcome{bad, {}}, unseen, true},
	} {
		r := &Result{}
		for i := range c.outcomes {
			r.Members = append(r.Members, &MemberResult{Member: &evidence.Member{MemberID: dumplog.ID(i + 1)}})
		}
		w := &walker{r: r}
		sig, known := w.promised(&Event{Proposer: 1, OneTerm: true, Outcomes: c.outcomes})
		if known != c.known || known && sig != c.sig {
			t.Errorf("%s: %d %t, want %d %t", name, sig, known, c.sig, c.known)
		}
	}
}

// TestPromise: where the rules allow an effect as well as none, a member that shows none is no witness against one that
// shows it.
func TestPromise(t *testing.T) {
	none, open := Outcome{State: NoEffect}, Outcome{State: NoEffect, Open: true}
	shown, other, bad := Outcome{State: Applied, Sig: 5}, Outcome{State: Applied, Sig: 7},
		Outcome{State: Contradicted, Sig: 9}
	refused, excluded := Outcome{State: Applied, Sig: 5, Against: true}, Outcome{State: Applied, Sig: 5, Against: true,
		excluded: true}
	for name, c := range map[string]struct {
		outcomes []Outcome
		sig      uint64
		known    bool
	}{
		"the proposer had no effect":              {[]Outcome{none, shown, shown}, 0, true},
		"the proposer may have had none":          {[]Outcome{open, shown, shown}, 5, true},
		"nobody shows one":                        {[]Outcome{open, open, none}, 0, true},
		"the proposer's was altered":              {[]Outcome{bad, shown, shown}, 5, true},
		"the proposer decides between effects":    {[]Outcome{other, shown, shown}, 7, true},
		"without the proposer most decide":        {[]Outcome{{}, shown, other, shown}, 5, true},
		"an effect that no database shows":        {[]Outcome{{}, bad}, unseen, true},
		"nothing is known":                        {[]Outcome{{State: OutsideHistory}, {State: NotApplied}}, 0, false},
		"the proposer's is excluded":              {[]Outcome{excluded, none}, 0, true},
		"that of most members is excluded":        {[]Outcome{{}, excluded, excluded, none}, 0, true},
		"it is excluded on all":                   {[]Outcome{excluded, excluded}, 0, false},
		"an alarm or a right is against it":       {[]Outcome{refused, none}, 5, true},
		"one that may have had none has no voice": {[]Outcome{{}, open, open, shown}, 5, true},
	} {
		r := &Result{}
		for i := range c.outcomes {
			r.Members = append(r.Members, &MemberResult{Member: &evidence.Member{MemberID: dumplog.ID(i + 1)}})
		}
		w := &walker{r: r}
		if sig, known := w.promised(&Event{Proposer: 1, Outcomes: c.outcomes}); sig != c.sig || known != c.known {
			t.Errorf("%s: %d %t, want %d %t", name, sig, known, c.sig, c.known)
		}
		if name == "the proposer had no effect" { // above its index, it may not have applied the entry
			r.Members[0].Member.AppliedMin, r.Members[1].Member.AppliedMin, r.Members[2].Member.AppliedMin = 6, 7, 7
			for index, want := range map[uint64]uint64{6: 0, 7: shown.Sig} {
				ev := &Event{Index: index, Proposer: 1, Outcomes: c.outcomes}
				if sig, known := w.promised(ev); sig != want || !known {
					t.Errorf("entry %d: %d %t, want %d", index, sig, known, want)
				}
			}
			ev := &Event{Index: 7, Proposer: 1, Outcomes: []Outcome{{State: Refused}, shown, shown}}
			if sig, known := w.promised(ev); sig != 0 || !known {
				t.Errorf("a refusal of the proposer: %d %t", sig, known)
			}
		}
		if name != "the proposer decides between effects" {
			continue
		}
		r.Members[0].firstBad = &Event{}
		if sig, known := w.promised(&Event{Proposer: 1, Outcomes: c.outcomes}); sig != shown.Sig || !known {
			t.Errorf("a proposer whose records contradicted its log before decides: %d %t", sig, known)
		}
		ev := &Event{Proposer: 1, Outcomes: []Outcome{shown, bad}}
		if sig, known := w.promised(ev); sig != shown.Sig || !known || !ev.Acked {
			t.Errorf("nothing speaks against it: %d %t, acknowledged %t", sig, known, ev.Acked)
		}
	}
}

// TestTally: what several databases hold alike, against an entry of one log, may be right.
func TestTally(t *testing.T) {
	bad, other := Outcome{State: Contradicted, Sig: 9}, Outcome{State: Contradicted, Sig: 8}
	for name, c := range map[string]struct {
		outcomes []Outcome
		doubtful bool
	}{
		"two databases":           {[]Outcome{bad, bad}, true},
		"two, and one not so far": {[]Outcome{bad, {State: NotApplied}, bad}, true},
		"two without the effect":  {[]Outcome{{State: Missing}, {State: Missing}}, true},
		"one database":            {[]Outcome{bad, {}}, false},
		"two that differ":         {[]Outcome{bad, other}, false},
		"a part of the records":   {[]Outcome{bad, {State: Contradicted, Sig: 9, Partial: true}}, false},
		"a third as it says":      {[]Outcome{bad, bad, {State: Applied, Sig: 5}}, false},
	} {
		r := &Result{}
		for i := range c.outcomes {
			m := &evidence.Member{MemberID: dumplog.ID(i + 1), WAL: evidence.WAL{Log: &dumplog.Log{},
				Summary: dumplog.Summary{FirstIndex: 1, LastIndex: 9}}}
			r.Members = append(r.Members, &MemberResult{Member: m})
		}
		if wrong, right, _ := r.tally(&Event{Index: 5, Outcomes: c.outcomes}); (wrong > 1 && right == 0) != c.doubtful {
			t.Errorf("%s: %d contradict it, %d confirm it", name, wrong, right)
		}
		if len(c.outcomes) < 3 && c.doubtful {
			r.Members[1].Member.WAL.Summary.Jumps = []dumplog.Jump{{From: 4, To: 6}}
			if wrong, _, _ := r.tally(&Event{Index: 5, Outcomes: c.outcomes}); wrong > 1 {
				t.Errorf("%s: a received database is a witness", name)
			}
			r.Members[1].Member.WAL.Summary.Jumps, r.Members[1].Member.MemberID = nil, 1
			if wrong, _, _ := r.tally(&Event{Index: 5, Outcomes: c.outcomes}); wrong > 0 {
				t.Errorf("%s: two copies of one member are witnesses", name)
			}
		}
	}
}

// TestDistrusts: records that are no possible history say nothing against a member whose records are one. Where no
// replayed member has a possible history, none is trusted more than another.
func TestDistrusts(t *testing.T) {
	member := func(possible, replayed bool) *MemberResult {
		kv := &dumpdb.KVStats{}
		if !possible {
			kv.Violations = []dumpdb.Violation{{Rule: "version-chain"}}
		}
		return &MemberResult{Member: &evidence.Member{DB: &evidence.DB{KV: kv}}, Checked: replayed}
	}
	for name, c := range map[string]struct {
		of, other *MemberResult
		want      bool
	}{
		"the other one is possible":                  {member(false, true), member(true, true), true},
		"both are possible":                          {member(true, true), member(true, true), false},
		"none is possible":                           {member(false, true), member(false, true), false},
		"the other one is possible and not replayed": {member(false, true), member(true, false), false},
		"only the other one is impossible":           {member(true, true), member(false, true), false},
	} {
		w := &walker{r: &Result{Members: []*MemberResult{c.of, c.other}}}
		if got := w.distrusts(0); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestRefusedWrongly: a refusal for an old auth revision is wrong if another member applied the entry, or by the log.
func TestRefusedWrongly(t *testing.T) {
	old := Outcome{State: Refused, Reason: ReasonOldAuth}
	wrong := old
	wrong.Wrongly = true
	for name, c := range map[string]struct {
		own, other Outcome
		holding    []int
		want       bool
	}{
		"by the log":                  {own: wrong, want: true},
		"another one must hold it":    {own: old, holding: []int{1}, want: true},
		"another one applied it":      {own: old, other: Outcome{State: Applied, Sig: 9}, want: true},
		"another one, without effect": {own: old, other: Outcome{State: Applied}},
		"another one is damaged":      {own: old, other: Outcome{State: Contradicted, Sig: 9}},
		"another one refused it too":  {own: old, other: old},
		"for another reason":          {own: Outcome{State: Refused, Reason: ReasonPermission}, holding: []int{1}},
		"it was applied":              {own: Outcome{State: Applied, Reason: ReasonOldAuth}, holding: []int{1}},
	} {
		e := &Event{Outcomes: []Outcome{c.own, c.other}, Holding: c.holding}
		if got := e.RefusedWrongly(0); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestVersionThatWrote: records that only the entry of another log can have written, at an index where the member's own
// log holds another one of that term, may be what the member has executed.
func TestVersionThatWrote(t *testing.T) {
	at := func(term uint64, r *dumplog.Request, holders ...int) *item {
		return &item{entry: dumplog.Entry{Index: 180, Term: term}, req: r, holders: holders}
	}
	wrote := &group{main: 68, records: []record{{key: "a", vhash: apply.SumOf([]byte("1"))}}}
	for name, c := range map[string]struct {
		own, other *item
		wrote      *group
		isOther    bool
	}{
		"the other one wrote":         {at(3, put("a", "X"), 1), at(3, put("a", "1"), 0), wrote, true},
		"its own wrote":               {at(3, put("a", "1"), 1), at(3, put("a", "X"), 0), wrote, false},
		"both can have written":       {at(3, put("a", "1"), 1), at(3, put("a", "1"), 0), wrote, false},
		"neither can have written":    {at(3, put("a", "X"), 1), at(3, put("a", "Y"), 0), wrote, false},
		"the other one is replaced":   {at(3, put("a", "X"), 1), at(2, put("a", "1"), 0), wrote, false},
		"the other one writes no key": {at(3, put("a", "X"), 1), at(3, &dumplog.Request{}, 0), wrote, false},
		"there is no record":          {at(3, put("a", "X"), 1), at(3, put("a", "1"), 0), nil, false},
	} {
		it := c.other
		it.others = map[int]*item{1: c.own}
		ma := &matcher{subject: &subject{logView: &logView{pos: 1}}}
		if got := ma.versionFor(it, c.wrote); (got == c.other) != c.isOther || got != c.own && got != c.other {
			t.Errorf("%s: %+v", name, got.req)
		}
	}
	alone := at(3, put("a", "X"), 0, 1)
	if got := (&matcher{subject: &subject{logView: &logView{pos: 1}}}).versionFor(alone, wrote); got != alone {
		t.Errorf("all logs agree: %+v", got.req)
	}
}
