package timeline_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/dossier"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/compare/timeline"

	"context"
)

func TestMain(m *testing.M) { evidencetest.Main(m) }

// build makes the timeline of a shipped incident.
func build(t *testing.T, name string, o timeline.Options) (*timeline.Timeline, *compare.Report) {
	t.Helper()
	var tl *timeline.Timeline
	study := func(ctx context.Context, in *check.Input, r *compare.Report) (err error) {
		tl, err = timeline.Build(ctx, dossier.TimelineInput(in, r), o)
		return err
	}
	r, err := compare.Diagnose(t.Context(), []evidence.Spec{{Where: evidencetest.Incident(t, name)}},
		compare.Options{NoDigests: true, Study: study})
	if err != nil {
		t.Fatal(err)
	}
	return tl, r
}

// TestAuthRevisionParts: the curves of the auth revision are equal up to the first restart and part there; ends are
// those of the databases.
func TestAuthRevisionParts(t *testing.T) {
	tl, r := build(t, "a-auth-revision-replay", timeline.Options{})
	at := func(lane int, index uint64) (rev, auth int64) {
		c := tl.Lanes[lane].Curve
		for n := 0; n < len(c) && uint64(c[n]) <= index; n += timeline.PerPoint {
			rev, auth = c[n+1], c[n+2]
		}
		return rev, auth
	}
	for _, c := range []struct {
		index uint64
		want  string
	}{{76, "16 16 16"}, {77, "25 16 16"}, {84, "29 20 20"}, {85, "29 24 20"}, {171, "29 24 20"}} {
		var got []string
		for lane := range tl.Lanes {
			_, auth := at(lane, c.index)
			got = append(got, fmt.Sprint(auth))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("auth revisions after entry %d: %s, want %s", c.index, s, c.want)
		}
	}
	for lane := range tl.Lanes {
		rev, auth := at(lane, 171)
		if m := r.Members[lane]; rev != *m.DB.CurrentRevision || uint64(auth) != m.Auth.Revision {
			t.Errorf("%s ends at revision %d and auth revision %d", m.Name, rev, auth)
		}
	}
}

// TestLanesOfIncident: lives, terms, membership, events and entries of a known log.
func TestLanesOfIncident(t *testing.T) {
	tl, _ := build(t, "a-auth-revision-replay", timeline.Options{})
	if tl.First != 1 || tl.Last != 171 || len(tl.Terms) != 2 || tl.Terms[1].Leader != "node3" || !tl.Terms[1].Elected {
		t.Errorf("log %d..%d, terms %+v", tl.First, tl.Last, tl.Terms)
	}
	for lane, want := range []struct {
		lives, lacks int
		first        uint64
	}{{2, 43, 103}, {2, 21, 115}, {1, 0, 0}} {
		l := tl.Lanes[lane]
		if l.AuthExpected == nil || *l.AuthExpected != 20 {
			t.Errorf("%s: auth revision %v, want the 20 that the log gives", l.Member, l.AuthExpected)
		}
		if len(l.Lives) != want.lives || l.Lacks != want.lacks || l.FirstLack != want.first {
			t.Errorf("%s: %d lives, lacks %d from %d", l.Member, len(l.Lives), l.Lacks, l.FirstLack)
		}
		sum := 0
		for _, n := range tl.Density.Lacking[lane] {
			sum += n
		}
		if sum != want.lacks {
			t.Errorf("%s: the density counts %d missing effects", l.Member, sum)
		}
	}
	if len(tl.Entries.Index) != 171 || !slices.IsSorted(tl.Entries.Index) || len(tl.Times) < 2 {
		t.Errorf("%d entries, %d times", len(tl.Entries.Index), len(tl.Times))
	}
	total := 0
	for _, row := range tl.Density.Counts {
		for _, n := range row {
			total += n
		}
	}
	if total != 171 {
		t.Errorf("the density counts %d entries", total)
	}
	if len(tl.History) != 3 || tl.History[0].Spans[0].From != 1 || tl.History[0].Spans[0].What != "voter" {
		t.Errorf("membership %+v", tl.History)
	}
}

// TestMembershipOfIncident: a member that was added late is one from its conf change on.
func TestMembershipOfIncident(t *testing.T) {
	tl, _ := build(t, "h-misconfigured-member-add", timeline.Options{})
	last := tl.History[len(tl.History)-1]
	if len(tl.History) != 4 || last.Spans[0].From != 113 || last.Spans[0].To != tl.Last {
		t.Errorf("membership %+v", tl.History)
	}
}

// TestHiddenByDamage: entries whose records stand on a damaged page leave a gap in the member's curve, not a line that
// says that it stood still; other members have none.
func TestHiddenByDamage(t *testing.T) {
	tl, _ := build(t, "f-bbolt-page-corruption", timeline.Options{})
	for lane, want := range []string{"[{129 155} {298 313}]", "[]", "[]"} {
		var got []string
		l := &tl.Lanes[lane]
		for _, s := range l.Hidden {
			got = append(got, fmt.Sprintf("{%d %d}", s.From, s.To))
			n := slices.Index(l.Curve, int64(s.From))
			if n%timeline.PerPoint != 0 || l.Curve[n+1] != 0 || l.Curve[n+2] != 1 {
				t.Errorf("%s: the curve goes on at entry %d", l.Member, s.From)
			}
		}
		if s := "[" + strings.Join(got, " ") + "]"; s != want {
			t.Errorf("%s: %s, want %s", l.Member, s, want)
		}
	}
}

// TestLostAtTheEnd: entries that a member had and its log lost are on its lane, whether the log ends with damage or
// without a trace.
func TestLostAtTheEnd(t *testing.T) {
	for name, want := range map[string]string{"e3-wal-missing-last-segment": "node1 324-515: not in its log; " +
		"the member had applied them or knew that they are committed", "e-torn-wal-tail": "node2 142-142: torn-tail in " +
		"0000000000000000-0000000000000000.wal at offset 42072",
		"m-healthy-3.6": ""} {
		tl, _ := build(t, name, timeline.Options{})
		var got []string
		for i := range tl.Lanes {
			for _, s := range tl.Lanes[i].Damaged {
				got = append(got, fmt.Sprintf("%s %d-%d: %s", tl.Lanes[i].Member, s.From, s.To, s.What))
			}
		}
		if s := strings.Join(got, "; "); s != want {
			t.Errorf("%s: %q, want %q", name, s, want)
		}
	}
}

// TestRefusedChange: a conf change that every server refuses is marked, one that takes effect is not.
func TestRefusedChange(t *testing.T) {
	h := clustertest.NewHand(t, t.TempDir(), "node1", 0xa1, 0xc1)
	h.Found(false, 0xa1, 0xa2, 0xa3)
	h.Conf(2, 4, clustertest.RemoveMember(0xb1, clustertest.RequestID(0xa1, 1000, 7)))
	h.Conf(2, 5, clustertest.RemoveMember(0xa3, clustertest.RequestID(0xa1, 1000, 8)))
	for _, id := range []uint64{0xa1, 0xa2} {
		h.Member(id, false, true)
	}
	h.Row("meta", "storageVersion", "3.6.0")
	h.State(2, 0xa1, 5)
	r, err := compare.Diagnose(t.Context(), []evidence.Spec{{Name: "node1", Where: h.Close(5, 2)}},
		compare.Options{NoDigests: true})
	if err != nil {
		t.Fatal(err)
	}
	refused := map[uint64]bool{}
	for _, m := range r.Timeline {
		if m.Kind == "conf-change" {
			refused[m.Index] = m.Refused
		}
	}
	if len(refused) != 5 || !refused[4] || refused[5] {
		t.Errorf("refused: %v", refused)
	}
}

// TestListIsBounded: of a log with more entries than may be listed, the surroundings of the break, the jumps and the
// end are.
func TestListIsBounded(t *testing.T) {
	tl, _ := build(t, "a-auth-revision-replay", timeline.Options{MaxEntries: 40, MaxEvents: 5})
	if n := len(tl.Entries.Index); n > 40 || n == 0 {
		t.Errorf("%d entries are listed", n)
	}
	if !slices.Contains(tl.Entries.Index, 77) {
		t.Errorf("the break is not listed: %v", tl.Entries.Index)
	}
	if len(tl.Events) != 5 || tl.EventCount != 43 {
		t.Errorf("%d events of %d", len(tl.Events), tl.EventCount)
	}
}

// TestNoValues: nothing of values or passwords is in a timeline.
func TestNoValues(t *testing.T) {
	tl, _ := build(t, "a-auth-revision-replay", timeline.Options{})
	raw, err := json.Marshal(tl)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"$2a$", "rootpw", "password=\\\"r"} {
		if strings.Contains(string(raw), secret) {
			t.Errorf("the timeline holds %q", secret)
		}
	}
}

// TestEscapeKey: keys become printable text of bounded length that tells keys apart.
func TestEscapeKey(t *testing.T) {
	for key, want := range map[string]string{"/a/b": "/a/b", "a\x00b": `a\x00b`, "\u202eevil": `\u202eevil`,
		"it's \"q\"": `it's \"q\"`, "ä": "ä", "\xff": `\xff`} {
		if got := timeline.EscapeKey([]byte(key)); got != want {
			t.Errorf("%q: %s, want %s", key, got, want)
		}
	}
	long := strings.Repeat("k", 1<<20)
	got := timeline.EscapeKey([]byte(long))
	if want := strings.Repeat("k", 256) + "…" + strings.Repeat("k", 128) + " <len 1048576>"; got != want {
		t.Errorf("%s", got)
	}
	for _, other := range []string{long + "k", long[1:] + "x", "x" + long[1:]} {
		if timeline.EscapeKey([]byte(other)) == got {
			t.Errorf("two keys are shown as %s", got)
		}
	}
}

// TestConsistentIndex: up to 3.4 the index does not move while auth entries are executed, and a restart falls back to
// it. Later it moves with every entry. It is never above its entry and never decreases.
func TestConsistentIndex(t *testing.T) {
	for name, lags := range map[string]bool{"a-auth-revision-replay": true, "m-healthy-3.6": false} {
		tl, r := build(t, name, timeline.Options{})
		for lane := range tl.Lanes {
			c := tl.Lanes[lane].Curve
			behind, last := false, int64(0)
			for n := 0; n < len(c); n += timeline.PerPoint {
				index, cons := c[n], c[n+3]
				if cons > index || cons < last {
					t.Errorf("%s, %s: consistent index %d after entry %d, %d before", name, r.Members[lane].Name, cons,
						index, last)
				}
				behind, last = behind || cons > 0 && cons < index, cons
			}
			if behind != lags {
				t.Errorf("%s, %s: lags %v: %v", name, r.Members[lane].Name, behind, c)
			}
			if stored := r.Members[lane].DB.ConsistentIndex; stored == nil || last > int64(*stored) {
				t.Errorf("%s, %s: ends at %d", name, r.Members[lane].Name, last)
			}
		}
	}
}
