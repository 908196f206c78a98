package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestIndexCanMove: a term in the database above all terms of the log keeps the index where it is.
func TestIndexCanMove(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(m *evidence.Member)
		outcome Outcome
	}{
		"frozen":            {func(*evidence.Member) {}, Violated},
		"the highest term":  {func(m *evidence.Member) { *m.DB.Meta.Term = 3 }, Holds},
		"all is applied":    {func(m *evidence.Member) { *m.DB.Meta.ConsistentIndex = 25 }, Holds},
		"a HardState of it": {func(m *evidence.Member) { m.WAL.Summary.HardState.Term = 4 }, Holds},
		"no HardState":      {func(m *evidence.Member) { m.WAL.Summary.HardState = nil }, Holds},
		"a snapshot": {func(m *evidence.Member) {
			m.WAL.Summary.HardState, m.WAL.Summary.Snapshots = nil, []dumplog.SnapshotRecord{{Index: 22}}
		}, Violated},
		"no term":     {func(m *evidence.Member) { m.DB.Meta.Term = nil }, ""},
		"no log":      {func(m *evidence.Member) { m.WAL.Log = nil }, ""},
		"no database": {func(m *evidence.Member) { m.DB = nil }, ""},
	} {
		m, term := withDB(withLog(member("n1"), 30), 20), uint64(4)
		m.DB.Meta.Term, m.WAL.Summary.LastTerm, m.Commit = &term, 3, 25
		m.WAL.Summary.HardState = &dumplog.HardState{Term: 3, Commit: 25}
		c.change(m)
		r := runIndexCanMove(&Input{Members: Sources{m}})
		if r.Outcome != c.outcome || (r.Reason == "") != (c.outcome != "") {
			t.Errorf("%s: %+v", name, r)
		}
		if len(r.Findings) > 0 && (r.Findings[0].At.Index != 21 ||
			!strings.Contains(r.Findings[0].Explanation, "entries 21..25") ||
			!strings.Contains(r.Findings[0].Explanation, "meta/term is 4, the highest term of the log is 3")) {
			t.Errorf("%s: %+v", name, r.Findings[0])
		}
	}
}

// TestIndexPresent: records without an index are executed again at the next start.
func TestIndexPresent(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(m *evidence.Member)
		outcome  Outcome
		observed string
	}{
		"0":               {func(*evidence.Member) {}, Violated, "0"},
		"absent":          {func(m *evidence.Member) { m.DB.Meta.ConsistentIndex = nil }, Violated, "absent"},
		"there":           {func(m *evidence.Member) { *m.DB.Meta.ConsistentIndex = 1 }, Holds, ""},
		"without records": {func(m *evidence.Member) { m.DB.KV.Revisions = 0 }, Holds, ""},
		"without a log":   {func(m *evidence.Member) { m.WAL.Summary.LastIndex = 0 }, Holds, ""},
		"damaged":         {func(m *evidence.Member) { m.DB.KVDamaged = true }, "", ""},
		"not read":        {func(m *evidence.Member) { m.DB.KV = nil }, "", ""},
		"no database":     {func(m *evidence.Member) { m.DB = nil }, "", ""},
		"a backup":        {func(m *evidence.Member) { m.Source.Kind = evidence.KindBackup }, "", ""},
	} {
		m := withDB(withLog(member("n1"), 30), 0)
		m.DB.KV.Revisions = 5
		c.change(m)
		r := runIndexPresent(&Input{Members: Sources{m}})
		if r.Outcome != c.outcome || (r.Reason == "") != (c.outcome != "") ||
			len(r.Findings) > 0 && r.Findings[0].Evidence[0].Observed != c.observed {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestEffectsAboveIndex: effects of entries above the index, of keys or of small buckets alone.
func TestEffectsAboveIndex(t *testing.T) {
	m := withDB(withLog(member("n1"), 30), 20)
	m.WAL.LastByTerm = []evidence.TermEnd{{Term: 2, First: 1, Last: 30}}
	keys := &replay.Stretch{From: 21, To: 24, First: 7, Last: 9}
	lease := &replay.RowsAhead{From: 22, To: 23, Rows: []replay.StateDiff{{Bucket: "lease", Key: "7"}}}
	auth := &replay.RowsAhead{From: 22, To: 23, Rows: []replay.StateDiff{{Bucket: "auth", Key: "authRevision"}}}
	for name, c := range map[string]struct {
		r    replay.MemberResult
		want []Kind
	}{
		"none": {replay.MemberResult{Checked: true}, nil},
		"keys": {replay.MemberResult{Checked: true, Ahead: keys}, []Kind{KindEffectsAboveIndex}},
		"auth": {replay.MemberResult{Checked: true, RowsAhead: auth}, []Kind{KindRowsAboveIndex}},
		"both": {replay.MemberResult{Checked: true, Ahead: keys, RowsAhead: lease}, []Kind{KindEffectsAboveIndex,
			KindRowsAboveIndex}},
	} {
		c.r.Member = m
		rp := &replay.Result{Members: []*replay.MemberResult{&c.r}}
		r := nothingAboveIndex.Run(&Input{Members: Sources{m}, Replay: rp})
		var got []Kind
		for _, f := range r.Findings {
			got = append(got, f.Kind)
			if f.At.Index != 21 && f.At.Index != 22 || f.At.Term != 2 || len(f.Evidence) != 2 ||
				strings.Contains(f.Explanation, "auth revision") != (name == "auth") {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	rp := &replay.Result{Members: []*replay.MemberResult{{Member: m, Why: "purged"}}}
	in := &Input{Members: Sources{m}, Replay: rp}
	if r := nothingAboveIndex.Run(in); r.Outcome == Holds || !strings.Contains(r.Reason, "n1: purged") {
		t.Errorf("%+v", r)
	}
}

// TestDamageInWords: what a damaged place of a log lost, and what a server does about it.
func TestDamageInWords(t *testing.T) {
	m := withLog(member("n1"), 30)
	for want, d := range map[string]*dumplog.DamageError{
		". Lost: entry 5":                       {LostFrom: 5, LostTo: 5},
		". Lost: entries 5..7":                  {LostFrom: 5, LostTo: 7},
		". Lost: entry 5 and whatever followed": {LostFrom: 5},
		". What etcd does: panics":              {Server: "panics"},
	} {
		f := damageFinding(Sources{m}, Error, m, d)
		if !strings.HasSuffix(strings.Split(f.Explanation, ";")[0], want) || f.At.Index != d.LostFrom ||
			strings.Contains(f.Explanation, "Lost") != (d.LostFrom > 0) {
			t.Errorf("%q, want %q", f.Explanation, want)
		}
	}
}

// TestDamagedSnapFiles: a damaged .snap file, but not an empty one that a killed server left.
func TestDamagedSnapFiles(t *testing.T) {
	for name, c := range map[string]struct {
		file dumplog.SnapFile
		want Severity
		log  bool
	}{
		"sound":               {dumplog.SnapFile{Size: 9}, "", false},
		"damaged":             {dumplog.SnapFile{Size: 9, Damage: &dumplog.DamageError{}}, Error, false},
		"set aside":           {dumplog.SnapFile{Size: 9, Damage: &dumplog.DamageError{}, Broken: true}, Warning, false},
		"set aside, empty":    {dumplog.SnapFile{Damage: &dumplog.DamageError{}, Cut: true, Broken: true}, "", false},
		"empty, in its place": {dumplog.SnapFile{Damage: &dumplog.DamageError{}, Cut: true}, Error, false},
		"empty, in no record": {dumplog.SnapFile{Damage: &dumplog.DamageError{}, Cut: true}, "", true},
		"cut, in no record":   {dumplog.SnapFile{Size: 9, Damage: &dumplog.DamageError{}, Cut: true}, "", true},
		"whole, in no record": {dumplog.SnapFile{Size: 9, Damage: &dumplog.DamageError{}}, Error, true},
	} {
		m := withSnapDir(t, "n1")
		c.file.NameTerm, c.file.NameIndex = 2, 9
		m.Snap.Files = []*dumplog.SnapFile{&c.file}
		if c.log {
			m = withLog(m, 9)
		}
		r := runSnapFiles(&Input{Members: Sources{member("n0"), m}})
		if (len(r.Findings) > 0) != (c.want != "") || c.want != "" && (r.Findings[0].Severity != c.want ||
			r.Findings[0].At != (At{Term: 2, Index: 9})) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := runSnapFiles(&Input{Members: Sources{member("n0")}}); r.Reason != "no source has a snap folder" {
		t.Errorf("%+v", r)
	}
}

// TestDatabaseBelowSnapshot: a database that is older than the newest raft snapshot.
func TestDatabaseBelowSnapshot(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(m *evidence.Member)
		outcome Outcome
	}{
		"below":              {func(*evidence.Member) {}, Violated},
		"at it":              {func(m *evidence.Member) { *m.DB.Meta.ConsistentIndex = 25 }, Holds},
		"no snapshot":        {func(m *evidence.Member) { m.WAL.Summary.Snapshots = nil }, Holds},
		"its database waits": {func(m *evidence.Member) { m.Snap.SnapDBs = []dumplog.SnapDB{{Index: 25}} }, Holds},
		"an older one waits": {func(m *evidence.Member) { m.Snap.SnapDBs = []dumplog.SnapDB{{Index: 24}} }, Violated},
		"of unknown age": {func(m *evidence.Member) {
			*m.DB.Meta.ConsistentIndex, m.DB.KV.Revisions = 0, 3
		}, Holds},
		"empty":              {func(m *evidence.Member) { *m.DB.Meta.ConsistentIndex = 0 }, Violated},
		"damaged":            {func(m *evidence.Member) { m.DB.KVDamaged = true }, ""},
		"no log":             {func(m *evidence.Member) { m.WAL.Log = nil }, ""},
		"no database":        {func(m *evidence.Member) { m.DB = nil }, ""},
		"starts from before": {func(m *evidence.Member) { m.Version.Minor = 5 }, Holds},
		"the file is there": {func(m *evidence.Member) {
			m.Version.Minor, m.Snap.Files = 5, []*dumplog.SnapFile{{Term: 2, Index: 25, NameTerm: 2, NameIndex: 25}}
		}, Violated},
		"a damaged log": {func(m *evidence.Member) {
			m.Version.Minor, m.WAL.Summary.Damage = 5, []*dumplog.DamageError{{}}
		}, Violated},
		"a purged log":   {func(m *evidence.Member) { m.Version.Minor, m.WAL.Summary.FirstIndex = 5, 3 }, Violated},
		"3.7 reads none": {func(m *evidence.Member) { m.Version.Minor = 7 }, Violated},
	} {
		m := withDB(withLog(withSnapDir(t, "n1"), 30), 20)
		m.WAL.Summary.Snapshots = []dumplog.SnapshotRecord{{Term: 2, Index: 25}}
		c.change(m)
		rp := &replay.Result{Survey: &replay.Survey{}, Members: []*replay.MemberResult{{Member: m}}}
		r := runSnapNotAhead(&Input{Members: Sources{m}, Replay: rp})
		if r.Outcome != c.outcome || (r.Reason == "") != (c.outcome != "") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// electedBy gives two members the votes of terms.
func electedBy(leaders map[uint64]dumplog.ID) Sources {
	var ss Sources
	for i := range 2 {
		m := withLog(member(fmt.Sprint("n", i+1)), 900)
		m.MemberID, m.Membership.Voters = dumplog.ID(i+1), []dumplog.ID{1, 2}
		m.WAL.LastByTerm = []evidence.TermEnd{{Term: 2, First: 1, Last: 99}, {Term: 3, First: 100, Last: 900}}
		for term, id := range leaders {
			m.WAL.Summary.Votes = append(m.WAL.Summary.Votes, dumplog.Vote{Term: term, For: id})
		}
		ss = append(ss, m)
	}
	return ss
}

// TestFormerLeaderRevokes: a former leader that revokes leases when another one begins to lead.
func TestFormerLeaderRevokes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *replay.RevokeBurst, ss Sources)
		want   bool
	}{
		"it does":            {func(*replay.RevokeBurst, Sources) {}, true},
		"as root":            {func(b *replay.RevokeBurst, _ Sources) { b.User = "root" }, true},
		"as a user":          {func(b *replay.RevokeBurst, _ Sources) { b.User = "app" }, false},
		"three":              {func(b *replay.RevokeBurst, _ Sources) { b.Revokes = 3 }, true},
		"two":                {func(b *replay.RevokeBurst, _ Sources) { b.Revokes = 2 }, false},
		"the leader does":    {func(b *replay.RevokeBurst, _ Sources) { b.Proposer = 2 }, false},
		"one that never led": {func(b *replay.RevokeBurst, _ Sources) { b.Proposer = 9 }, false},
		"an unknown one":     {func(b *replay.RevokeBurst, _ Sources) { b.Proposer = 0 }, false},
		"in its own term":    {func(b *replay.RevokeBurst, _ Sources) { b.Term, b.First = 2, 50 }, false},
		"in an unknown term": {func(b *replay.RevokeBurst, _ Sources) { b.Term = 4 }, false},
		"late in the term":   {func(b *replay.RevokeBurst, _ Sources) { b.First = 301 }, false},
		"as late as it can":  {func(b *replay.RevokeBurst, _ Sources) { b.First = 300 }, true},
		"in no log": {func(_ *replay.RevokeBurst, ss Sources) {
			ss[0].WAL.LastByTerm, ss[1].WAL.LastByTerm = nil, nil
		}, false},
		"in the other's log": {func(_ *replay.RevokeBurst, ss Sources) { ss[0].WAL.LastByTerm = nil }, true},
	} {
		ss := electedBy(map[uint64]dumplog.ID{2: 1, 3: 2})
		b := replay.RevokeBurst{Term: 3, First: 120, Last: 130, Proposer: 1, Revokes: 9}
		c.change(&b, ss)
		r := runRevokesByLeader(&Input{Members: ss, MaxRows: 20, Replay: &replay.Result{Survey: &replay.Survey{
			Bursts: []replay.RevokeBurst{b}}}})
		if (len(r.Findings) > 0) != c.want || c.want && (!slices.Equal(r.Findings[0].Members, []string{"n1"}) ||
			r.Findings[0].At != (At{Term: 3, Index: b.First}) || len(r.Findings[0].Evidence) != 1) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	for want, in := range map[string]*Input{"the logs could not be merged": {},
		"the logs at hand do not hold a majority of the votes of any term": {
			Replay: &replay.Result{Survey: &replay.Survey{}}}} {
		for _, run := range []func(*Input) Result{runRevokesByLeader, runLeasesExpire} {
			if r := run(in); r.Outcome == Holds || r.Reason != want {
				t.Errorf("%+v, want %s", r, want)
			}
		}
	}
}

// TestLeasesNeverExpire: a leader that received a snapshot, and revokes nothing in a term with many leases.
func TestLeasesNeverExpire(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *replay.Survey, m *evidence.Member)
		want   bool
	}{
		"never":               {func(*replay.Survey, *evidence.Member) {}, true},
		"three leases":        {func(s *replay.Survey, _ *evidence.Member) { s.LeaseTerms[1].Grants = 3 }, true},
		"two leases":          {func(s *replay.Survey, _ *evidence.Member) { s.LeaseTerms[1].Grants = 2 }, false},
		"one is revoked":      {func(s *replay.Survey, _ *evidence.Member) { s.LeaseTerms[1].Revokes = 1 }, false},
		"none is in any term": {func(s *replay.Survey, _ *evidence.Member) { s.LeaseTerms[0].Revokes = 0 }, false},
		"no snapshot":         {func(_ *replay.Survey, m *evidence.Member) { m.WAL.Summary.Jumps = nil }, false},
		"a snapshot after it": {func(_ *replay.Survey, m *evidence.Member) { m.WAL.Summary.Jumps[0].To = 110 }, false},
		"just before it":      {func(_ *replay.Survey, m *evidence.Member) { m.WAL.Summary.Jumps[0].To = 109 }, true},
		"a start since": {func(s *replay.Survey, _ *evidence.Member) {
			s.Starts = map[dumplog.ID][]replay.Start{2: {{Index: 51}}}
		}, false},
		"a start before": {func(s *replay.Survey, _ *evidence.Member) {
			s.Starts = map[dumplog.ID][]replay.Start{2: {{Index: 50}}}
		}, true},
		"a start after": {func(s *replay.Survey, _ *evidence.Member) {
			s.Starts = map[dumplog.ID][]replay.Start{2: {{Index: 800}}}
		}, true},
		"another's start": {func(s *replay.Survey, _ *evidence.Member) {
			s.Starts = map[dumplog.ID][]replay.Start{1: {{Index: 60}}}
		}, true},
		"a change of auth": {func(s *replay.Survey, _ *evidence.Member) {
			s.Auth = []replay.AuthEntry{{Index: 60}}
		}, false},
		"an earlier change": {func(s *replay.Survey, _ *evidence.Member) {
			s.Auth = []replay.AuthEntry{{Index: 50}}
		}, true},
		"a later change": {func(s *replay.Survey, _ *evidence.Member) {
			s.Auth = []replay.AuthEntry{{Index: 800}}
		}, true},
	} {
		ss := electedBy(map[uint64]dumplog.ID{2: 1, 3: 2})
		ss[1].WAL.Summary.Jumps = []dumplog.Jump{{From: 20, To: 50}}
		s := &replay.Survey{LeaseTerms: []replay.LeaseTerm{{Term: 2, First: 5, Last: 60, Grants: 9, Revokes: 4},
			{Term: 3, First: 110, Last: 800, Grants: 9}}}
		c.change(s, ss[1])
		r := runLeasesExpire(&Input{Members: ss, Replay: &replay.Result{Survey: s}})
		if (len(r.Findings) > 0) != c.want || c.want && (!slices.Equal(r.Findings[0].Members, []string{"n2"}) ||
			r.Findings[0].At != (At{Term: 3, Index: 110})) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestLeaseFaults: leases that outlived their revoke, and leases that nothing revoked.
func TestLeaseFaults(t *testing.T) {
	fault := func(change func(x *replay.LeaseFault)) replay.LeaseFault {
		x := replay.LeaseFault{ID: 7, Index: 12, Term: 2, Granted: 5}
		change(&x)
		return x
	}
	for name, c := range map[string]struct {
		x        replay.LeaseFault
		severity Severity
		observed string
		index    uint64
	}{
		"kept": {fault(func(x *replay.LeaseFault) {
			x.Kept, x.Row = true, true
		}), Error, "still there", 20},
		"without effect": {fault(func(x *replay.LeaseFault) {
			x.Kept, x.Missing = true, true
		}), Error, "the row is gone, the keys are not deleted", 12},
		"refused": {fault(func(x *replay.LeaseFault) {
			x.Kept, x.Reason = true, replay.ReasonKey
		}), Info, "still there; refused: " + string(replay.ReasonKey), 12},
		"without a user": {fault(func(x *replay.LeaseFault) {
			x.Kept, x.Reason = true, replay.ReasonUserEmpty
		}), Warning, "still there; refused: " + string(replay.ReasonUserEmpty), 12},
		"an unknown lease": {fault(func(x *replay.LeaseFault) {
			x.Kept, x.Reason = true, replay.ReasonLease
		}), Error, "still there; refused: " + string(replay.ReasonLease), 20},
		"gone": {fault(func(*replay.LeaseFault) {}), Error, "absent", 20},
		"gone with keys": {fault(func(x *replay.LeaseFault) {
			x.Rev = 9
		}), Error, "absent; its keys were deleted at revision 9", 12},
	} {
		m := withDB(withLog(member("n1"), 30), 20)
		m.DB.Leases = []dumpdb.Lease{{ID: 7, Place: dumpdb.Place{Page: 4}}}
		rp := &replay.Result{Members: []*replay.MemberResult{
			{Member: m, Checked: true, To: 20, LeaseFaults: []replay.LeaseFault{c.x}}}}
		r := runLeaseLives(&Input{Members: Sources{m}, MaxRows: 20, Replay: rp})
		if len(r.Findings) != 1 || r.Findings[0].Severity != c.severity ||
			r.Findings[0].Evidence[0].Observed != c.observed ||
			r.Findings[0].At.Index != c.index || c.x.Kept && *r.Findings[0].Evidence[0].Page != 4 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	in := &Input{Members: Sources{member("n1")}, Replay: &replay.Result{Members: make([]*replay.MemberResult, 1)}}
	in.Replay.Members[0] = &replay.MemberResult{}
	if r := runLeaseLives(in); r.Outcome == Holds || r.Reason != "no member could be replayed" {
		t.Errorf("%+v", r)
	}
}

// TestVotersThatRan: a voter that never started, and how many of the others can make a majority.
func TestVotersThatRan(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(ss Sources, top *evidence.Member)
		outcome  Outcome
		severity Severity
		says     string
		absent   bool
	}{
		"a majority without it": {func(Sources, *evidence.Member) {}, Violated, Warning,
			"the cluster still has a majority", false},
		"all have run": {func(_ Sources, top *evidence.Member) {
			top.Membership.Started[4] = true
		}, Holds, "", "", false},
		"too few have run": {func(_ Sources, top *evidence.Member) {
			top.Membership.Started = map[dumplog.ID]bool{1: true}
			top.Membership.Voters = []dumplog.ID{1, 4}
		}, Violated, Critical, "a majority cannot be reached: no leader", false},
		"none has published": {func(ss Sources, top *evidence.Member) {
			top.Membership.Started = nil
		}, "", "", "", false},
		"one is not at hand": {func(ss Sources, top *evidence.Member) {
			ss[1].MemberID, ss[1].Commit, top.Commit, ss[2].Commit = 9, 20, 20, 20
		}, Violated, Critical, "1 of the voters that have run are not among the sources", true},
		"it has committed since": {func(ss Sources, _ *evidence.Member) {
			ss[1].MemberID = 9
		}, Violated, Warning, "the cluster still has a majority", false},
		"one knows less": {func(ss Sources, _ *evidence.Member) {
			ss[2].Commit = 10
		}, Violated, Critical, "1 of them had not received this configuration", false},
	} {
		var ss Sources
		for i, name := range []string{"n1", "n2", "n3"} {
			m := withLog(member(name), 30)
			m.MemberID, m.Commit = dumplog.ID(i+1), 30-uint64(i)
			m.Membership = evidence.Membership{RaftKnown: true, Voters: []dumplog.ID{1, 2, 3, 4},
				Started:  map[dumplog.ID]bool{1: true, 2: true, 3: true},
				PeerURLs: map[dumplog.ID][]string{4: {"http://h"}}}
			m.WAL.Conf = []evidence.ConfEntry{added(20, 4, "http://h")}
			ss = append(ss, m)
		}
		c.change(ss, ss[0])
		r := runQuorumPossible(&Input{Members: ss})
		if r.Outcome != c.outcome || (r.Reason != "") != (c.outcome == "") {
			t.Errorf("%s: %+v", name, r)
		}
		if len(r.Findings) > 0 && (r.Findings[0].Severity != c.severity ||
			!strings.Contains(r.Findings[0].Explanation, c.says) ||
			r.Findings[0].Facts.VotersAbsent != c.absent || r.Findings[0].At.Index != 20) {
			t.Errorf("%s: %+v", name, r.Findings[0])
		}
	}
	r := runQuorumPossible(&Input{Members: Sources{member("n1")}})
	if r.Reason != "no source shows raft's configuration" {
		t.Errorf("%+v", r)
	}
}
