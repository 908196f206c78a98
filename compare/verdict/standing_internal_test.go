package verdict

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// TestOrderOfStandings: one that can serve is before one that cannot, a sound one before one that is not, and among
// those what was promised and is missing counts first, then damage, wrong state, who names it and the majority; lag
// counts last. Where histories parted, what one lacks of the other counts after damage.
func TestOrderOfStandings(t *testing.T) {
	blamed := func(n int) []*check.Finding { return make([]*check.Finding, n) }
	for name, c := range map[string]struct{ better, worse standing }{
		"usable, though it lacks":      {standing{usable: true, lacks: 3, damage: 3}, standing{}},
		"sound, though it lags":        {standing{usable: true, behind: 900}, standing{usable: true, lacks: 1}},
		"sound, though in a minority":  {standing{usable: true, minority: 9}, standing{usable: true, control: 1}},
		"sound, and the other damaged": {standing{usable: true, behind: 9}, standing{usable: true, damage: 1}},
		"sound, and the other blamed": {standing{usable: true, behind: 9},
			standing{usable: true, blamed: blamed(1)}},
		"lacks less, though more is damaged": {standing{usable: true, lacks: 1, damage: 2, control: 1},
			standing{usable: true, lacks: 2}},
		"parted, lacks more and less is damaged": {standing{usable: true, parted: true, lacks: 9},
			standing{usable: true, parted: true, damage: 1}},
		"less damage": {standing{usable: true, lacks: 1, damage: 1, control: 1},
			standing{usable: true, lacks: 1, damage: 2}},
		"state as the log gives it": {standing{usable: true, damage: 1, blamed: blamed(2)},
			standing{usable: true, damage: 1, control: 1}},
		"named less often": {standing{usable: true, damage: 1, blamed: blamed(1), minority: 3},
			standing{usable: true, damage: 1, blamed: blamed(2)}},
		"with the majority":             {standing{usable: true, behind: 7}, standing{usable: true, minority: 1}},
		"its log is longer":             {standing{usable: true, shorter: 1}, standing{usable: true, shorter: 2}},
		"lags less, its log is shorter": {standing{usable: true, shorter: 2}, standing{usable: true, behind: 1}},
		"its log is longer, outside":    {standing{usable: true, outside: true}, standing{usable: true, shorter: 1}},
		"not outside, though odd":       {standing{usable: true, odd: 1}, standing{usable: true, outside: true}},
		"odd in less":                   {standing{usable: true, odd: 1}, standing{usable: true, odd: 2}},
		"lags less":                     {standing{usable: true, behind: 6}, standing{usable: true, behind: 7}},
	} {
		if !c.better.less(c.worse) || c.worse.less(c.better) || c.better.equal(c.worse) {
			t.Errorf("%s: %+v is not before %+v", name, c.better, c.worse)
		}
	}
	a, b := standing{usable: true, lacks: 1, behind: 2, pending: 1}, standing{pos: 3, usable: true, lacks: 1, behind: 2}
	if a.less(b) || b.less(a) || !a.equal(b) {
		t.Error("a pending compaction decides between equals only")
	}
}

// sources are members with these kinds, each with a database and a log.
func sources(kinds ...evidence.Kind) (out []*evidence.Member) {
	for i, kind := range kinds {
		out = append(out, &evidence.Member{Source: &evidence.Source{Name: fmt.Sprint("n", i+1), Kind: kind},
			MemberID: dumplog.ID(0xa1 + i)})
	}
	return out
}

// TestBlames: a finding accuses the members that it names when it leaves others out, and is neither undecided nor about
// the cluster nor a mere note.
func TestBlames(t *testing.T) {
	sound := check.Finding{Check: check.K03, Class: check.ClassDataDivergence, Severity: check.Error,
		Members: []string{"n1"}}
	for name, c := range map[string]struct {
		change  func(f *check.Finding)
		members int
		want    bool
	}{
		"names it":                {func(*check.Finding) {}, 3, true},
		"names another":           {func(f *check.Finding) { f.Members = []string{"n2"} }, 3, false},
		"names it and another":    {func(f *check.Finding) { f.Members = []string{"n2", "n1"} }, 3, true},
		"names all":               {func(f *check.Finding) { f.Members = []string{"n1", "n2", "n3"} }, 3, false},
		"names the only one":      {func(*check.Finding) {}, 1, true},
		"undecided":               {func(f *check.Finding) { f.Undecided = true }, 3, false},
		"about the cluster":       {func(f *check.Finding) { f.Check = check.R07 }, 3, false},
		"a warning":               {func(f *check.Finding) { f.Severity = check.Warning }, 3, false},
		"of no class":             {func(f *check.Finding) { f.Class = "" }, 3, false},
		"a critical one as well":  {func(f *check.Finding) { f.Severity = check.Critical }, 3, true},
		"learners of the cluster": {func(f *check.Finding) { f.Check = check.M10 }, 3, false},
	} {
		f := sound
		c.change(&f)
		j := &ranking{Input: &Input{Input: &check.Input{Members: sources(make([]evidence.Kind, c.members)...)}}}
		if got := j.blames(&f, "n1"); got != c.want {
			t.Errorf("%s: blames %t, want %t", name, got, c.want)
		}
	}
}

// TestWrongState: any state that the log does not give makes a member one that would diverge again.
func TestWrongState(t *testing.T) {
	wrongs := map[string]func(x *replay.MemberResult){
		"auth jumps": func(x *replay.MemberResult) {
			x.Jumps, x.AuthKnown = make([]replay.Jump, 1), true
		},
		"small buckets":         func(x *replay.MemberResult) { x.StateDiffs = make([]replay.StateDiff, 1) },
		"an entry twice":        func(x *replay.MemberResult) { x.Reruns = make([]replay.Stretch, 1) },
		"an effect is missing":  func(x *replay.MemberResult) { x.Counts[replay.Missing]++ },
		"an effect is another":  func(x *replay.MemberResult) { x.Counts[replay.Contradicted]++ },
		"an unexplained number": func(x *replay.MemberResult) { x.Unexplained, x.AuthKnown = -1, true },
		"ahead of its index":    func(x *replay.MemberResult) { x.Ahead = &replay.Stretch{} },
		"a lease kept":          func(x *replay.MemberResult) { x.Kept = make([]replay.KeptLease, 1) },
		"an extra revision":     func(x *replay.MemberResult) { x.Extra = make([]int64, 1) },
	}
	if wrongState(&replay.MemberResult{}) {
		t.Fatal("nothing is wrong, and it is called so")
	}
	for name, change := range wrongs {
		for other, too := range wrongs {
			x := &replay.MemberResult{}
			if change(x); !wrongState(x) {
				t.Errorf("%s: not called wrong", name)
			}
			if too(x); !wrongState(x) {
				t.Errorf("%s and %s: not called wrong", name, other)
			}
		}
	}
	if wrongState(&replay.MemberResult{Unexplained: -1}) || wrongState(&replay.MemberResult{Jumps: []replay.Jump{{}}}) {
		t.Error("a number is called wrong that the log does not give")
	}
}

// TestNotCalledFor: a check that was not made keeps a verdict from being healthy only where the sources call for it.
func TestNotCalledFor(t *testing.T) {
	db := &evidence.DB{}
	wal := evidence.WAL{Log: &dumplog.Log{}}
	entries := wal
	entries.Summary.FirstIndex, entries.Summary.LastIndex = 1, 9
	for name, c := range map[string]struct {
		id      check.ID
		members []*evidence.Member
		want    bool
	}{
		"pages without database":    {check.D02, []*evidence.Member{{WAL: wal}}, true},
		"pages":                     {check.D02, []*evidence.Member{{DB: db}}, false},
		"log without log":           {check.W01, []*evidence.Member{{DB: db}}, true},
		"log, be it empty":          {check.W01, []*evidence.Member{{WAL: wal}}, false},
		"replay":                    {check.K03, []*evidence.Member{{DB: db, WAL: entries}}, false},
		"replay, no database":       {check.K03, []*evidence.Member{{WAL: entries}}, true},
		"replay, no entries":        {check.K03, []*evidence.Member{{DB: db, WAL: wal}}, true},
		"replay, no log":            {check.K03, []*evidence.Member{{DB: db}}, true},
		"keys of one":               {check.K01, []*evidence.Member{{DB: db}}, true},
		"keys of two":               {check.K01, []*evidence.Member{{DB: db}, {DB: db}}, false},
		"keys of two, one database": {check.K01, []*evidence.Member{{DB: db}, {WAL: wal}}, true},
		"logs of two":               {check.R01, []*evidence.Member{{WAL: entries}, {WAL: entries}}, false},
		"logs of two, one empty":    {check.R01, []*evidence.Member{{WAL: entries}, {WAL: wal}}, true},
		"anything else":             {check.A01, []*evidence.Member{{}}, false},
	} {
		for i, m := range c.members {
			m.Source = &evidence.Source{Name: fmt.Sprint("n", i), Kind: evidence.KindDataDir}
		}
		j := &health{Input: &Input{Input: &check.Input{Members: c.members}}}
		if got := j.notCalledFor(c.id); got != c.want {
			t.Errorf("%s: not called for %t, want %t", name, got, c.want)
		}
	}
}

// TestLostVoters: where the sources are no majority of the newest configuration, the voters that are not among them are
// named, by name where a member list has it.
func TestLostVoters(t *testing.T) {
	voters := func(ids ...dumplog.ID) evidence.Membership { return evidence.Membership{Voters: ids} }
	of := func(n int, change func(ms []*evidence.Member)) []*evidence.Member {
		ms := sources(make([]evidence.Kind, n)...)
		for _, m := range ms {
			m.Membership = voters(0xa1, 0xa2, 0xa3)
		}
		if change != nil {
			change(ms)
		}
		return ms
	}
	for name, c := range map[string]struct {
		members []*evidence.Member
		lost    []string
		known   bool
	}{
		"all":      {of(3, nil), nil, true},
		"majority": {of(2, nil), nil, true},
		"one":      {of(1, nil), []string{"a2", "a3"}, true},
		"one, a name is known": {of(1, func(ms []*evidence.Member) {
			ms[0].DB = &evidence.DB{Members: []dumpdb.Member{{ID: 0xa3, Name: "etcd-3"}}}
		}), []string{"a2", "etcd-3"}, true},
		"half of four": {of(2, func(ms []*evidence.Member) {
			ms[0].Membership, ms[1].Membership = voters(0xa1, 0xa2, 0xa3, 0xa4), voters(0xa1, 0xa2, 0xa3, 0xa4)
		}), []string{"a3", "a4"}, true},
		"none of the voters": {of(1, func(ms []*evidence.Member) { ms[0].Membership = voters(0xb1, 0xb2) }),
			[]string{"b1", "b2"}, false},
		"nothing is known": {of(1, func(ms []*evidence.Member) { ms[0].Membership = voters() }), nil, true},
		"the newest decides": {of(2, func(ms []*evidence.Member) { lists(ms[1], 9, voters(0xa1, 0xb2, 0xb3)) }),
			[]string{"b2", "b3"}, true},
		"an older one does not": {of(2, func(ms []*evidence.Member) {
			lists(ms[0], 9, voters(0xa1, 0xb2, 0xb3))
		}), []string{"b2", "b3"}, true},
	} {
		j := &advice{Input: &Input{Input: &check.Input{Members: c.members}}}
		if lost, known := j.lostVoters(); !slices.Equal(lost, c.lost) || known != c.known {
			t.Errorf("%s: lost %v, known %t; want %v, %t", name, lost, known, c.lost, c.known)
		}
	}
}

// lists gives a member a log that ends at an index, and a configuration.
func lists(m *evidence.Member, last uint64, ms evidence.Membership) {
	m.WAL = evidence.WAL{Log: &dumplog.Log{}}
	m.WAL.Summary.FirstIndex, m.WAL.Summary.LastIndex = 1, last
	m.Membership = ms
}

// TestMajorityOfRows: a row of bucket key speaks against those that differ from more than half of the compared members,
// unless the log has decided it.
func TestMajorityOfRows(t *testing.T) {
	cell := func(mod int64, digest string) *diff.Cell { return &diff.Cell{Mod: mod, ValueDigest: digest} }
	x, y := cell(5, "x"), cell(5, "y")
	for name, c := range map[string]struct {
		cells []*diff.Cell
		event bool
		want  []int
	}{
		"one of three":          {[]*diff.Cell{x, y, x}, false, []int{0, 1, 0}},
		"one of three lacks it": {[]*diff.Cell{x, nil, x}, false, []int{0, 1, 0}},
		"one of three has it":   {[]*diff.Cell{nil, x, nil}, false, []int{0, 1, 0}},
		"one of two":            {[]*diff.Cell{x, y}, false, []int{0, 0}},
		"two against two":       {[]*diff.Cell{x, x, y, y}, false, []int{0, 0, 0, 0}},
		"the replay judged it":  {[]*diff.Cell{x, y, x}, true, []int{0, 0, 0}},
	} {
		ms := sources(make([]evidence.Kind, len(c.cells))...)
		d := &diff.Result{Members: ms, Buckets: []diff.Bucket{{Name: "key",
			Rows: []diff.Row{{Key: []byte("/k"), Cells: c.cells}}}}}
		rp := &replay.Result{}
		var list []standing
		for i := range ms {
			rp.Members, list = append(rp.Members, &replay.MemberResult{}), append(list, standing{pos: i})
		}
		if c.event {
			rp.Events = []*replay.Event{{Keys: []string{"/k"}}}
		}
		j := &ranking{Input: &Input{Input: &check.Input{Members: ms, Diff: d, Replay: rp}}}
		j.majority().countAgainst(list)
		var got []int
		for _, s := range list {
			got = append(got, s.minority)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestMajorityThatIsWrong: a row that is shown to be wrong on every member of a majority says nothing against others.
func TestMajorityThatIsWrong(t *testing.T) {
	names := func(key string, labels ...string) check.Finding {
		f := check.Finding{Severity: check.Error, Members: labels}
		for _, l := range labels {
			f.Evidence = append(f.Evidence, check.Evidence{Member: l, Key: check.Bytes(key)})
		}
		return f
	}
	both, one, alone := names("/k", "n1", "n3"), names("/k", "n1"), names("/k", "n2")
	undecided, warned, shared := both, both, both
	undecided.Undecided, warned.Severity, shared.Members = true, check.Warning, []string{"n1"}
	for name, c := range map[string]struct {
		findings []check.Finding
		want     int
	}{
		"nothing": {nil, 1}, "both": {[]check.Finding{both}, 0},
		"each by its own finding": {[]check.Finding{one, names("/k", "n3")}, 0},
		"one of them":             {[]check.Finding{one}, 1}, "the odd one": {[]check.Finding{alone}, 1},
		"another key":             {[]check.Finding{names("/l", "n1", "n3")}, 1},
		"nothing is decided":      {[]check.Finding{undecided}, 1},
		"a warning":               {[]check.Finding{warned}, 1},
		"one of them is compared": {[]check.Finding{shared}, 1},
	} {
		ms := sources(make([]evidence.Kind, 3)...)
		x, y := &diff.Cell{Mod: 5, ValueDigest: "x"}, &diff.Cell{Mod: 5, ValueDigest: "y"}
		d := &diff.Result{Members: ms, Buckets: []diff.Bucket{{Name: "key",
			Rows: []diff.Row{{Key: []byte("/k"), Cells: []*diff.Cell{x, y, x}}}}}}
		rp := &replay.Result{Members: []*replay.MemberResult{{}, {}, {}}}
		j := &ranking{Input: &Input{Input: &check.Input{Members: ms, Diff: d, Replay: rp}, Findings: c.findings}}
		list := []standing{{pos: 0}, {pos: 1}, {pos: 2}}
		if j.majority().countAgainst(list); list[1].minority != c.want || list[0].minority+list[2].minority > 0 {
			t.Errorf("%s: %+v", name, list)
		}
	}
}

// TestMajorityThatIsGarbled: members whose record of a key does not decode say nothing against one that has the key.
func TestMajorityThatIsGarbled(t *testing.T) {
	for name, c := range map[string]struct {
		rule  string
		mains [3]int64 // of the violation of each member
		want  int
	}{
		"none":                {dumpdb.RuleUndecodable, [3]int64{}, 1},
		"both":                {dumpdb.RuleUndecodable, [3]int64{5, 0, 5}, 0},
		"one":                 {dumpdb.RuleUndecodable, [3]int64{5, 0, 0}, 1},
		"at another revision": {dumpdb.RuleUndecodable, [3]int64{5, 0, 6}, 1},
		"by another rule":     {dumpdb.RuleLease, [3]int64{5, 0, 5}, 1},
	} {
		ms := sources(make([]evidence.Kind, 3)...)
		for i, main := range c.mains {
			kv := &dumpdb.KVStats{}
			if main > 0 {
				kv.Violations = []dumpdb.Violation{{Rev: dumpdb.Rev{Main: main}, Rule: c.rule}}
			}
			ms[i].DB = &evidence.DB{Handle: &dumpdb.DB{}, KV: kv}
		}
		d := &diff.Result{Members: ms, Buckets: []diff.Bucket{{Name: "key",
			Rows: []diff.Row{{Key: []byte("/k"), Cells: []*diff.Cell{nil, {Mod: 5, ValueDigest: "x"}, nil}}}}}}
		j := &ranking{Input: &Input{Input: &check.Input{Members: ms, Diff: d}}}
		list := []standing{{pos: 0}, {pos: 1}, {pos: 2}}
		if j.majority().countAgainst(list); list[1].minority != c.want || list[0].minority+list[2].minority > 0 {
			t.Errorf("%s: %+v", name, list)
		}
	}
}

// TestOddOnes: an undecided error that names those in a minority counts against them, a warning or a decided one not.
func TestOddOnes(t *testing.T) {
	odd := check.Finding{Undecided: true, Severity: check.Error, Odd: []string{"n2"}}
	warned, decided := odd, odd
	warned.Severity, decided.Undecided = check.Warning, false
	ms := sources(make([]evidence.Kind, 3)...)
	j := &ranking{Input: &Input{Input: &check.Input{Members: ms}, Findings: []check.Finding{odd, warned, decided, odd}}}
	list := []standing{{pos: 0}, {pos: 1}, {pos: 2}}
	j.majority().countOdd(list)
	if list[0].minority != 0 || list[1].minority != 2 || list[2].minority != 0 {
		t.Errorf("%+v", list)
	}
}

// asBackup leaves a member its database alone, without a configuration of raft.
func asBackup(m *evidence.Member) {
	m.Source.Kind, m.WAL, m.Membership, m.MemberID = evidence.KindBackup, evidence.WAL{}, evidence.Membership{}, 0
}

// aboutRow is a finding by which a row of some members is wrong.
func aboutRow(id check.ID, bucket string, members ...string) check.Finding {
	return check.Finding{ID: string(id) + "-1", Check: id, Class: check.ClassLatentDivergence, Severity: check.Error,
		Members: members, Title: "a row is wrong", Evidence: []check.Evidence{{Bucket: bucket}}}
}

// checkedResults are the results of members whose databases were replayed.
func checkedResults(n int) (list []*replay.MemberResult) {
	for range n {
		list = append(list, &replay.MemberResult{Checked: true})
	}
	return list
}

// tail gives the logs of some members two entries more than the others have, which no source shows to be committed.
func tail(j *ranking, longer ...int) {
	j.Replay = &replay.Result{Survey: &replay.Survey{LastUncommitted: 11}, Members: checkedResults(len(j.Members))}
	for _, i := range longer {
		w := &j.Members[i].WAL
		w.Summary.LastIndex, w.LastByTerm = 11, []evidence.TermEnd{{Term: 2, First: 1, Last: 11}}
	}
}

// TestUnproven: that nothing is lost is proven only by logs of a majority, sources that could all be read, and keys
// that could be compared.
func TestUnproven(t *testing.T) {
	build := func() *ranking {
		ms := sources(evidence.KindDataDir, evidence.KindDataDir, evidence.KindDataDir)
		for _, m := range ms {
			lists(m, 9, evidence.Membership{Voters: []dumplog.ID{0xa1, 0xa2, 0xa3}})
			m.DB = &evidence.DB{Handle: &dumpdb.DB{}}
		}
		return &ranking{Input: &Input{Input: &check.Input{Members: ms,
			Diff: &diff.Result{Members: ms, NotCompared: map[int]string{}, KeysNotCompared: map[int]string{},
				Buckets: []diff.Bucket{{Name: "key", Equal: release.Yes}}}}}}
	}
	records := func(wrong ...int) func(j *ranking) {
		return func(j *ranking) {
			as := func(sum string) *diff.RecordCell { return &diff.RecordCell{Sum: sum} }
			rev := dumpdb.Rev{Main: 7}
			j.Diff.Records = &diff.Records{Equal: release.No, Differ: 1, Rows: []diff.RecordRow{{
				Rev: rev, Key: []byte("k"), At: []int{0, 1, 2}, Cells: []*diff.RecordCell{as("a"), as("b"), as("b")}}}}
			for _, i := range wrong {
				j.Members[i].DB.KV = &dumpdb.KVStats{Violations: []dumpdb.Violation{{Rev: rev, Rule: "version-chain"}}}
			}
		}
	}
	fell := func(j *ranking) {
		f := aboutRow(check.K02, "key", "n1", "n2")
		f.Undecided, f.Kind = true, check.KindRevisionFalls
		j.Findings = []check.Finding{f}
		j.Replay = &replay.Result{Members: checkedResults(3)}
	}
	for name, c := range map[string]struct {
		change func(j *ranking)
		want   string
	}{
		"proven":                              {func(*ranking) {}, ""},
		"an older value of the kept is wrong": {records(0), ""},
		"an older value of another is wrong":  {records(1, 2), ""},
		"one of the others is wrong": {records(1), `1 superseded record of n1 and other members differ: at revision ` +
			`7.0 (not as on n2, n3). Which member is right is not proven`},
		"an older value differs": {records(), "Which member is right is not proven"},
		"an older value differs between others": {func(j *ranking) {
			records()(j)
			j.Diff.Records.Rows[0].At = []int{1, 2}
		}, ""},
		"one could not be read": {func(j *ranking) { j.Unread = make([]Unread, 1) }, "1 source could not be read"},
		"running members without logs": {func(j *ranking) {
			for _, m := range j.Members {
				m.Source.Kind = evidence.KindEndpoint
			}
		}, "no source has a log"},
		"an entry of one log is doubted": {func(j *ranking) {
			j.Replay = &replay.Result{Doubted: []replay.Doubted{{Index: 5, Against: []int{0, 2}}}}
		}, "entry 5 is in one log only, and n1 and other databases agree against it"},
		"it is doubted against others": {func(j *ranking) {
			j.Replay = &replay.Result{Doubted: []replay.Doubted{{Index: 5, Against: []int{1, 2}}}}
		}, ""},
		"two logs of three": {func(j *ranking) { j.Members[2].WAL = evidence.WAL{} }, ""},
		"one log of three": {func(j *ranking) {
			j.Members[2].WAL, j.Members[1].WAL = evidence.WAL{},
				evidence.WAL{}
		}, "the logs of 1 of 3 voters are given, and 2 are needed"},
		"a backup and two logs of three": {func(j *ranking) { asBackup(j.Members[0]) }, ""},
		"a backup and one log of three": {func(j *ranking) {
			asBackup(j.Members[0])
			j.Members[2].WAL = evidence.WAL{}
		}, "the logs of 1 of 3 voters are given, and 2 are needed"},
		"backups alone": {func(j *ranking) {
			for _, m := range j.Members {
				asBackup(m)
			}
		}, "no source has a log, so more may have been committed than the databases show"},
		"two copies of one member": {func(j *ranking) {
			j.Members[2].WAL, j.Members[1].MemberID = evidence.WAL{},
				0xa1
		}, "the logs of 1 of 3"},
		"one log of three lost its end": {func(j *ranking) {
			j.Findings = []check.Finding{{Check: check.R10, Severity: check.Critical, Class: check.ClassMemberLostData,
				Members: []string{"n2"}}}
		}, ""},
		"two logs of three lost their ends": {func(j *ranking) {
			j.Findings = []check.Finding{{Check: check.R10, Severity: check.Critical, Class: check.ClassMemberLostData,
				Members: []string{"n2"}},
				{Check: check.R07, Members: []string{"n3"}}}
		}, "logs of 1 of 3 voters"},
		"two lost their databases": {func(j *ranking) {
			j.Findings = []check.Finding{{Check: check.X03, Kind: check.KindDBRemoved, Severity: check.Critical,
				Class: check.ClassMemberLostData, Members: []string{"n2", "n3"}}}
		}, ""},
		"a record of it is wrong": {func(j *ranking) { j.Findings = []check.Finding{aboutRow(check.K04, "key", "n1")} },
			"the right content of n1 may be lost where it is wrong: K04-1 (a row is wrong)"},
		"a lease of it is wrong": {func(j *ranking) { j.Findings = []check.Finding{aboutRow(check.L09, "lease", "n1")} },
			"the right content of n1 may be lost where it is wrong: L09-1"},
		"a record of another is wrong": {func(j *ranking) {
			j.Findings = []check.Finding{aboutRow(check.K04, "key", "n2")}
		}, ""},
		"a counter of it is wrong": {func(j *ranking) { j.Findings = []check.Finding{aboutRow(check.A02, "auth", "n1")} },
			""},
		"auth is on or off wrongly": {func(j *ranking) {
			f := aboutRow(check.A08, "auth", "n1", "n2")
			f.Undecided, f.Evidence = true, []check.Evidence{{Bucket: "auth", Key: check.Bytes("authEnabled")}}
			j.Findings = []check.Finding{f}
		}, "the right content of n1 may be lost where it is wrong: A08-1"},
		"a row of it and of another is wrong": {func(j *ranking) {
			j.Findings = []check.Finding{aboutRow(check.L01, "lease", "n1", "n2")}
		}, "the right content of n1 may be lost where it is wrong: L01-1"},
		"a row of all is wrong": {func(j *ranking) {
			j.Findings = []check.Finding{aboutRow(check.L01, "lease", "n1", "n2", "n3")}
		}, ""},
		"more keys differ than are listed": {func(j *ranking) {
			j.Diff.Buckets[0] = diff.Bucket{Name: "key", Equal: release.No, Differ: 70, SameContent: 9, Rows: make([]diff.Row, 0)}
		}, "61 keys differ between members, and the log shows of 0 which member lacks what"},
		"more differ, in revisions only": {func(j *ranking) {
			j.Diff.Buckets[0] = diff.Bucket{Name: "key", Equal: release.No, Differ: 70, SameContent: 70, Rows: make([]diff.Row, 0)}
		}, ""},
		"entries that only another log holds": {func(j *ranking) {
			j.Members[2].WAL = evidence.WAL{}
			tail(j, 1)
		}, "its log lacks 2 entries that the log of n2 holds"},
		"entries that a majority lacks":   {func(j *ranking) { tail(j, 1) }, ""},
		"entries that two hold, of three": {func(j *ranking) { tail(j, 1, 2) }, "its log lacks 2 entries"},
		"a newer configuration elsewhere": {func(j *ranking) {
			lists(j.Members[1], 11, evidence.Membership{Voters: []dumplog.ID{0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7}})
			j.Replay, j.Members[1].Commit = &replay.Result{Survey: &replay.Survey{}, Members: checkedResults(3)}, 11
		}, "the logs of 3 of 7 voters are given, and 4 are needed"},
		"a lease differs, and nothing decides": {func(j *ranking) {
			f := aboutRow(check.L01, "lease", "n1", "n2")
			f.Undecided = true
			j.Findings = []check.Finding{f}
		}, "the right content of n1 may be lost where it is wrong: L01-1"},
		"its revision is too low, or that of another too high": {func(j *ranking) {
			f := aboutRow(check.K02, "key", "n1", "n2")
			f.Undecided, f.Kind = true, check.KindRevisionFalls
			j.Findings = []check.Finding{f}
		}, "the right content of n1 may be lost where it is wrong: K02-1"},
		"its revision is higher, as that of another lacks a write": {func(j *ranking) {
			fell(j)
			j.Replay.Members[1].Counts[replay.Missing] = 1
		}, ""},
		"its revision is lower, as that of another has one too many": {func(j *ranking) {
			fell(j)
			j.Findings[0].Members = []string{"n2", "n1"}
			j.Replay.Members[1].Extra = []int64{7}
		}, ""},
		"its revision is higher, and both lack a write": {func(j *ranking) {
			fell(j)
			for _, i := range []int{0, 1} {
				j.Replay.Members[i].Counts[replay.Missing] = 1
			}
		}, "K02-1"},
		"its revision is higher, and the log does not say why": {fell, "K02-1"},
		"keys differ, and nothing decides": {func(j *ranking) {
			f := aboutRow(check.K01, "key", "n1", "n2")
			f.Undecided = true
			j.Findings = []check.Finding{f}
		}, ""},
		"a wrong record is counted": {func(j *ranking) {
			j.Findings = []check.Finding{aboutRow(check.K04, "key", "n1")}
			j.Replay = &replay.Result{Members: make([]*replay.MemberResult, 3)}
			for i := range j.Replay.Members {
				j.Replay.Members[i] = &replay.MemberResult{Lacks: 1, Checked: true}
			}
		}, ""},
		"many rows of it are wrong": {func(j *ranking) {
			for range 5 {
				j.Findings = append(j.Findings, aboutRow(check.K04, "key", "n1"))
			}
		}, "K04-1 (a row is wrong), 2 more"},
		"one lost its end, one is missing": {func(j *ranking) {
			j.Members[2].WAL = evidence.WAL{}
			j.Findings = []check.Finding{{Check: check.R07, Members: []string{"n2"}}}
		}, "logs of 1 of 3 voters"},
		"a copy that lost its end beside a whole one": {func(j *ranking) {
			j.Members[2].MemberID = 0xa2
			j.Findings = []check.Finding{{Check: check.R07, Members: []string{"n3"}}}
		}, ""},
		"a log whose member was wiped": {func(j *ranking) {
			j.Members[2].WAL = evidence.WAL{}
			j.Findings = []check.Finding{{Check: check.M04, Class: check.ClassMemberLostData, Severity: check.Error,
				Members: []string{"n2"}}}
		}, "n2 may have acknowledged more than the logs show"},
		"a wiped member next to a majority": {func(j *ranking) {
			j.Findings = []check.Finding{{Check: check.M04, Class: check.ClassMemberLostData, Severity: check.Error,
				Members: []string{"n2"}}}
		}, ""},
		"a log that lost its end": {func(j *ranking) {
			j.Members[2].WAL = evidence.WAL{}
			whole := evidence.Facts{WAL: &evidence.WALFacts{FirstIndex: 1, LastIndex: 9}, Commit: 9}
			cut := whole
			cut.Commit = 12
			j.Facts = []evidence.Facts{whole, cut, {}}
		}, "n2 may have acknowledged more than the logs show"},
		"a learner's log is none": {func(j *ranking) { j.Members[2].MemberID, j.Members[1].MemberID = 0xb1, 0xb2 },
			"the logs of 1 of 3"},
		"no configuration is known": {func(j *ranking) { j.Members[0].Membership.Voters = nil }, ""},
		"keys of one are set apart": {func(j *ranking) { j.Diff.KeysNotCompared[2] = "far away" },
			"the keys of n3 could not be compared with those of n1"},
		"those of the kept are": {func(j *ranking) { j.Diff.KeysNotCompared[0] = "far away" },
			"the keys of n2 could not be compared with those of n1"},
		"compared, but not completed": {func(j *ranking) { j.Diff.Buckets[0].Equal = release.Unknown }, "the keys of n2 could not"},
	} {
		j := build()
		c.change(j)
		got := strings.Join(j.unproven(0, j.keptRecords(0)), "; ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
