package verdict

import (
	"encoding/json"

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
	"github.com/etcd-medic/etcd-medic/shell"
)

// TestAddToVerdict: what is added is in each part of the answer that there is.
func TestAddToVerdict(t *testing.T) {
	for _, c := range []struct{ in, want Verdict }{
		{Verdict{Summary: "s"}, Verdict{Summary: "s+"}},
		{Verdict{Summary: "s", Statement: "t"}, Verdict{Summary: "s+", Statement: "t+"}},
		{Verdict{Summary: "s", Problem: "p"}, Verdict{Summary: "s+", Problem: "p+"}},
	} {
		got := c.in
		if got.Add("+"); got != c.want {
			t.Errorf("%+v, want %+v", got, c.want)
		}
		if says := got.Says(); says != got.Statement && got.Statement != "" || says == "" {
			t.Errorf("says %q: %+v", says, got)
		}
	}
}

// TestOtherReasons: the reasons of a place without the findings that accuse the member.
func TestOtherReasons(t *testing.T) {
	r := &Rank{Reasons: []string{"lags", "named by K03-1, D02-1", "cannot serve"}, NamedBy: []string{"K03-1", "D02-1"}}
	if got := r.OtherReasons(); !slices.Equal(got, []string{"lags", "cannot serve"}) || len(r.Reasons) != 3 {
		t.Errorf("%q of %q", got, r.Reasons)
	}
	r = &Rank{Reasons: []string{"named by "}}
	if got := r.OtherReasons(); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

// TestNextAsJSON: a step has its command as text and as arguments, or neither.
func TestNextAsJSON(t *testing.T) {
	for want, n := range map[string]Next{
		`{"text":"a","command":"b 'c d'","commandArgs":["b","c d"]}`: {Text: "a", Command: shell.Format("b {}", "c d")},
		`{"text":"a","byHand":true}`: {Text: "a", ByHand: true, Member: "n1",
			Gathers: true},
	} {
		b, err := json.Marshal(n)
		if err != nil || string(b) != want {
			t.Errorf("%s, %v; want %s", b, err, want)
		}
	}
}

// adviceOf collects the steps of a function of the advice.
func adviceOf(ad *advice, of func(add func(string, shell.Command))) (said []string) {
	of(func(text string, command shell.Command) {
		said = append(said, strings.TrimSpace(text+" $ "+command.String()))
	})
	return said
}

// TestForeignSources: each cluster's sources are diagnosed by themselves, if there are several clusters.
func TestForeignSources(t *testing.T) {
	rk := rankingOf(make([]evidence.Kind, 3)...)
	ad := &advice{Input: rk.Input, ranking: rk}
	if got := adviceOf(ad, ad.nextForeign); len(got) != 1 {
		t.Errorf("%q", got)
	}
	rk.Members[0].ClusterID, rk.Members[2].ClusterID = 0xc1, 0xc1
	got := adviceOf(ad, ad.nextForeign)
	if want := []string{"cluster c1 $ etcd-medic diagnose n1 n3",
		"of no known cluster $ etcd-medic diagnose n2"}; len(got) != 3 ||
		!slices.Equal(got[1:], want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestForeignBackups: a backup is diagnosed with the sources that it has a member in common with, if there are any.
func TestForeignBackups(t *testing.T) {
	rk := rankingOf(make([]evidence.Kind, 5)...)
	ad := &advice{Input: rk.Input, ranking: rk}
	rk.Members[1].ClusterID, rk.Members[1].MemberID = 0xc1, 1
	rk.Members[0].Membership.Bucket = []dumplog.ID{1, 2}
	rk.Members[2].Membership.Bucket = []dumplog.ID{8, 9}
	rk.Members[3].Membership = evidence.Membership{Bucket: []dumplog.ID{7}, Removed: []dumplog.ID{8}}
	got := adviceOf(ad, ad.nextForeign)
	if want := []string{"cluster c1 $ etcd-medic diagnose n2 n1", "of no known cluster $ etcd-medic diagnose n3 n4",
		"of no known cluster $ etcd-medic diagnose n5"}; len(got) != 4 || !slices.Equal(got[1:], want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNamesOfTheBest: one that is best, several that are equal, and several between which nothing decides.
func TestNamesOfTheBest(t *testing.T) {
	for want, b := range map[string]*Best{
		"n1":                       {Members: []string{"n1"}},
		"n1 and n2 (equally good)": {Members: []string{"n1", "n2"}},
		"n1 and n2 (content cannot decide between them: what)": {Members: []string{"n1", "n2"}, Undecided: "what"},
	} {
		if got := equally(b); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	list := make([]standing, 3)
	ranked := func(members ...string) *Best {
		return &Best{Members: members, Ranking: []Rank{{Member: "n1", Reasons: []string{"a"}}, {Member: "n2",
			Reasons: []string{"b"}},
			{Member: "n3", Reasons: []string{"c"}, Lacks: Count{CommittedEntries: 2}}}}
	}
	surplus := ranked("n1")
	surplus.Ranking[2].Lacks, surplus.Ranking[2].Surplus = Count{}, 1
	if got, _ := why(surplus, list); !strings.HasSuffix(got, "not by auth revision or majority vote") {
		t.Errorf("one holds a write too many: %q", got)
	}
	undecided := ranked("n1", "n2", "n3")
	undecided.Undecided = "keys differ"
	for want, b := range map[string]*Best{
		"no source is usable in its current state":                 ranked(),
		"all members are equally good":                             ranked("n1", "n2", "n3"),
		"content cannot decide between n1, n2 and n3: keys differ": undecided,
		"n1: a; n2: b; n3: c. Chosen by the writes each member actually holds, not by auth revision or " +
			"majority vote": ranked("n1"),
	} {
		if got, _ := why(b, list); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got, best := why(ranked("n1"), list[:1]); got != "the only source: a" || best != got {
		t.Errorf("%q, %q", got, best)
	}
}

// TestSayAuth: a rise is said without the log's auth revision where the end of the log is lost.
func TestSayAuth(t *testing.T) {
	for lost, want := range map[bool]string{false: "its auth revision is %d, the log gives %d",
		true: "its auth revision rose without an entry"} {
		rk := rankingOf(evidence.KindDataDir)
		x := rk.Replay.Members[0]
		x.Checked, x.AuthKnown, x.AuthEndLost, x.Jumps = true, true, lost, make([]replay.Jump, 1)
		rk.Members[0].DB = &evidence.DB{}
		var said []string
		rk.sayControl(0, func(format string, _ ...any) { said = append(said, format) })
		if !slices.Contains(said, want) || rk.logGivesAuth() == lost {
			t.Errorf("%t: %q", lost, said)
		}
	}
}

// TestDoubtsOwn: a log that its own member's database contradicts.
func TestDoubtsOwn(t *testing.T) {
	for _, c := range []struct {
		d    replay.Doubted
		want bool
	}{{replay.Doubted{Logs: []int{0}, Against: []int{1, 0}}, true},
		{replay.Doubted{Logs: []int{1, 0}, Against: []int{1, 0}}, true},
		{replay.Doubted{Logs: []int{1}, Against: []int{0}}, false},
		{replay.Doubted{Logs: []int{0}, Against: []int{1}}, false}} {
		rk := rankingOf(evidence.KindDataDir, evidence.KindDataDir)
		rk.Replay.Doubted, rk.Replay.Members[0].Checked = []replay.Doubted{c.d}, true
		var said []string
		rk.sayControl(0, func(format string, _ ...any) { said = append(said, format) })
		if rk.doubtsOwn(0) != c.want || slices.Contains(said, "its log contradicts its own database") != c.want ||
			(rk.standing(0, rk.Members[0], 0).control == 1) != c.want {
			t.Errorf("%+v: %q", c.d, said)
		}
	}
}

// TestSourceNames: sources that could not be used have names, too.
func TestSourceNames(t *testing.T) {
	rk := rankingOf(evidence.KindDataDir)
	rk.Unread = []Unread{{Name: "n9"}}
	if got := rk.sourceNames(); !slices.Equal(got, []string{"n1", "n9"}) {
		t.Errorf("%q", got)
	}
	if (&ranking{&Input{Input: &check.Input{}}}).rank() != nil {
		t.Error("no member is ranked")
	}
}

// TestMajorityWithoutComparison: nothing speaks against a member where nothing was compared, and an older copy has no
// vote.
func TestMajorityWithoutComparison(t *testing.T) {
	rk := rankingOf(make([]evidence.Kind, 3)...)
	list := []standing{{pos: 0}, {pos: 1}, {pos: 2}}
	rk.majority().countAgainst(list)
	rk.Diff = &diff.Result{Members: rk.Members, NotCompared: map[int]string{}, KeysNotCompared: map[int]string{}}
	rk.majority().countAgainst(list)
	for _, s := range list {
		if s.minority != 0 {
			t.Errorf("%+v", s)
		}
	}
	x, y := &diff.Cell{ValueDigest: "x"}, &diff.Cell{ValueDigest: "y"}
	row := &diff.Row{Cells: []*diff.Cell{x, y, x}}
	for _, c := range []struct {
		older map[int]int
		apart map[int]string
		most  []int
		of    int
	}{{nil, nil, []int{0, 2}, 3}, {map[int]int{0: 2}, nil, []int{1}, 2}, {nil, map[int]string{1: "lags"}, []int{0, 2},
		2}} {
		rk.Diff.KeysNotCompared = c.apart
		if most, of := rk.majority().largestGroup(row, c.older); !slices.Equal(most, c.most) || of != c.of {
			t.Errorf("%+v: %v of %d", c, most, of)
		}
	}
	rk.Replay = nil
	if rk.Diff.Judged(row) || len(rk.majority().decidedByLog()) > 0 {
		t.Error("without a log a row is explained")
	}
}

// TestLoginAndVersion: the flags for a login are those that the files show a need of.
func TestLoginAndVersion(t *testing.T) {
	version := "3.5"
	for name, c := range map[string]struct {
		urls  []string
		auth  *evidence.AuthFacts
		wrote *string
		want  string
		minor int
	}{
		"plain": {[]string{"http://a"}, nil, nil, "", 0},
		"TLS": {[]string{"http://a", "https://a"}, nil, &version,
			"--cacert CA.crt --cert CLIENT.crt --key CLIENT.key", 5},
		"auth":      {[]string{"http://a"}, &evidence.AuthFacts{Enabled: true}, nil, "--user root", 0},
		"auth off":  {[]string{"http://a"}, &evidence.AuthFacts{}, nil, "", 0},
		"not known": {nil, nil, nil, "", 0},
	} {
		h := &hands{best: &evidence.Facts{MemberID: 0xa1, Auth: c.auth}}
		h.best.Membership.Members = []dumpdb.Member{{ID: 0xa1, ClientURLs: c.urls}}
		h.best.WroteBy.Etcd = c.wrote
		if got := h.login().String(); got != c.want || h.minor() != c.minor {
			t.Errorf("%s: %q, 3.%d; want %q", name, got, h.minor(), c.want)
		}
	}
	h := &hands{best: &evidence.Facts{}}
	h.best.Membership.Members = []dumpdb.Member{{ID: 0}}
	if h.member(0) != nil || h.member(dumplog.ID(7)) != nil {
		t.Error("a member without ID is found")
	}
}

// TestAgreedWrongRecords: what the log shows to be wrong below the compact revision is counted, though all members hold
// the same.
func TestAgreedWrongRecords(t *testing.T) {
	rk := rankingOf(evidence.KindDataDir, evidence.KindDataDir)
	rk.Replay = &replay.Result{}
	for range rk.Members {
		rk.Replay.Members = append(rk.Replay.Members, &replay.MemberResult{Below: []replay.BelowDiff{
			{Key: "/b", Index: 20, Rev: 9, Expected: "absent", Observed: "mod 9"},
			{Key: "/a", Index: 7, Wrote: dumpdb.Rev{Main: 6, Sub: 1}, Expected: "mod 6", Observed: "absent"},
			{Index: 20, Expected: "revision 8", Observed: "revision 9"}}})
	}
	k := rk.keptRecords(1)
	if rows := k.wrong.Rows; k.wrong.Count != 2 || k.wrong.Mendable+k.open != 0 || rows[0].Index != 7 ||
		rows[0].Revision != (check.Rev{Main: 6, Sub: 1}) || rows[0].Kept != "absent" || rows[0].Expected != "mod 6" ||
		string(rows[1].Key) != "/b" || rows[1].Revision.Main != 9 {
		t.Errorf("%+v", k)
	}
}

// TestRecordsThatCannotBeRead: where records differ and cannot be read again, it is open which are right.
func TestRecordsThatCannotBeRead(t *testing.T) {
	rk := rankingOf(evidence.KindDataDir, evidence.KindDataDir)
	for _, m := range rk.Members {
		m.DB = &evidence.DB{KVDamaged: true}
	}
	rk.Diff = &diff.Result{Members: rk.Members, NotCompared: map[int]string{}, KeysNotCompared: map[int]string{},
		Records: &diff.Records{Equal: release.No, Differ: 5}}
	if k := rk.keptRecords(0); k.open != 0 || k.wrong.Count != 0 {
		t.Errorf("nothing is left to compare: %+v", k)
	}
	alone := &ranking{&Input{Input: &check.Input{Members: rk.Members}}}
	if k := alone.keptRecords(0); k.open != 0 || k.decided == nil {
		t.Errorf("%+v", k)
	}
	rk.Diff.Records.Equal = release.Yes
	if k := rk.keptRecords(0); k.open+k.wrong.Count != 0 {
		t.Errorf("equal records: %+v", k)
	}
}
