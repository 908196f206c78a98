package surgery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/refusal"
)

// workOn is a change of a source with a database at an index, next to other members.
func workOn(index uint64, peers ...*evidence.Member) *work {
	m := &evidence.Member{Source: &evidence.Source{Name: "source"}, DB: &evidence.DB{Handle: &dumpdb.DB{},
		Meta: dumpdb.MetaBucket{ConsistentIndex: &index}}}
	return &work{o: &Options{}, report: &Report{}, set: &evidence.Set{Members: append([]*evidence.Member{m}, peers...)}}
}

func peer(commit uint64) *evidence.Member {
	return &evidence.Member{Source: &evidence.Source{Name: fmt.Sprint("peer", commit)}, Commit: commit}
}

// TestLostEntries: entries that the cluster may rely on are not given up without consent.
func TestLostEntries(t *testing.T) {
	for _, tc := range []struct {
		name   string
		w      *work
		r      rewriter
		s      dumplog.Summary
		voters int
		gives  string // "" is nothing
		refuse string // "" is done
		notes  int
	}{
		{"nothing", workOn(5), rewriter{next: 11}, dumplog.Summary{LastIndex: 10, MaxCommit: 9}, 3, "", "", 0},
		{"entries that the member knows to be committed", workOn(5), rewriter{next: 9}, dumplog.Summary{LastIndex: 10,
			MaxCommit: 9}, 3, "entries 9 to 10", "committed, as this member knows: entry 9;", 0},
		{"entries that its database has applied", workOn(9), rewriter{next: 9}, dumplog.Summary{LastIndex: 10,
			MaxCommit: 5},
			3, "entries 9 to 10", "committed, as this member knows: entry 9;", 0},
		{"entries that the damage hides", workOn(5), rewriter{next: 9}, dumplog.Summary{LastIndex: 8, MaxCommit: 8,
			Damage: []*dumplog.DamageError{{LostFrom: 9, LostTo: 12}}}, 3, "entries 9 to 12",
			"perhaps committed by this " +
				"member's vote, and no other member was named that shows it: entries 9 to 12", 0},
		{"entries of the only voter", workOn(5), rewriter{next: 9}, dumplog.Summary{LastIndex: 10, MaxCommit: 8}, 1,
			"entries 9 to 10", "", 0},
		{"entries that another member knows to be committed", workOn(5, peer(9), peer(7)), rewriter{next: 9},
			dumplog.Summary{LastIndex: 10, MaxCommit: 8}, 3, "entries 9 to 10",
			"committed, perhaps by this member's vote: entry 9", 0},
		{"the others know of more than there was", workOn(5, peer(20)), rewriter{next: 9},
			dumplog.Summary{LastIndex: 10,
				MaxCommit: 8}, 3, "entries 9 to 10", "committed, perhaps by this member's vote: entries 9 to 10", 0},
		{"entries that the others do not have", workOn(5, peer(8)), rewriter{next: 9}, dumplog.Summary{LastIndex: 10,
			MaxCommit: 8}, 3, "entries 9 to 10", "", 0},
		{"a torn record", workOn(5), rewriter{next: 10, torn: 10}, dumplog.Summary{LastIndex: 10, MaxCommit: 8}, 3,
			"entry 10",
			"", 1},
		{"entries before a torn record", workOn(5), rewriter{next: 9, torn: 10}, dumplog.Summary{LastIndex: 10,
			MaxCommit: 8},
			3, "entries 9 to 10", "perhaps committed by this member's vote, and no other", 0},
		{"a torn record, and no database", func() *work {
			w := workOn(0)
			w.source().DB = nil
			return w
		}(), rewriter{next: 10, torn: 10}, dumplog.Summary{LastIndex: 10, MaxCommit: 8}, 3, "entry 10", "", 2},
		{"a short log", workOn(12), rewriter{next: 11, short: true}, dumplog.Summary{LastIndex: 10, MaxCommit: 8}, 3,
			"entries 11 to 12", "committed, as this member knows: entries 11 to 12", 0},
		{"a log that is no shorter than it was", workOn(12), rewriter{next: 11}, dumplog.Summary{LastIndex: 10,
			MaxCommit: 8},
			3, "", "", 0},
	} {
		for range tc.voters {
			m := tc.w.source()
			m.Membership.Voters = append(m.Membership.Voters, dumplog.ID(len(m.Membership.Voters)+1))
		}
		tc.r.w, tc.r.s = tc.w, &tc.s
		err := tc.r.lost()
		var r *refusal.Error
		refused := errors.As(err, &r) && r.Flag == AcceptLostCommits && strings.HasPrefix(r.Reason, tc.refuse)
		if tc.refuse != "" && !refused || tc.refuse == "" && err != nil {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.refuse)
		}
		gives := ""
		if tc.gives != "" {
			gives = tc.gives + " of this member's log"
		}
		if got := strings.Join(tc.w.report.GivesUp, "\n"); got != gives || len(tc.w.report.Notes) != tc.notes {
			t.Errorf("%s: gives up %q, want %q; notes %q", tc.name, got, gives, tc.w.report.Notes)
		}
	}
}

// TestAdvice: what can be done about lost entries.
func TestAdvice(t *testing.T) {
	crc := []*dumplog.DamageError{{Kind: dumplog.DamageTermOrder}, {Kind: dumplog.DamageCRC}}
	for _, tc := range []struct {
		w        *work
		damage   []*dumplog.DamageError
		unproven map[uint64]bool
		want     string
	}{
		{workOn(5), crc, nil, "or keep entries whose checksum fails with --" + AcceptUnproven},
		{workOn(5), crc, map[uint64]bool{7: true}, "name other members with --with: their logs may have the entries"},
		{workOn(5), crc[:1], nil, "name other members with --with: their logs"},
		{workOn(5, peer(8)), nil, nil, "clone the member from a better one"},
	} {
		r := &rewriter{w: tc.w, s: &dumplog.Summary{Damage: tc.damage}, unproven: tc.unproven}
		if got := r.advice(); !strings.Contains(got, tc.want) {
			t.Errorf("%+v: %q, want %q", tc, got, tc.want)
		}
	}
}

// TestSpans: ranges are joined where they touch, and only some of many are named.
func TestSpans(t *testing.T) {
	if got := spansOf([]uint64{3, 4, 5, 7, 9, 10}); !slices.Equal(got, []span{{3, 5}, {7, 7}, {9, 10}}) {
		t.Errorf("%v", got)
	}
	var many []span
	for i := range uint64(5) {
		many = append(many, span{10 * i, 10*i + 1})
	}
	if got := entries(many...); got != "entries 0 to 1, 10 to 11, 20 to 21, 30 to 31, 40 to 41" {
		t.Error(got)
	}
	if got := entries(append(many, span{50, 50}, span{60, 60})...); !strings.HasSuffix(got,
		"40 to 41 and 2 more stretches") {
		t.Error(got)
	}
	if one, two := entries(span{7, 7}), entries(span{7, 7}, span{9, 9}); one != "entry 7" || two != "entries 7, 9" {
		t.Errorf("%q, %q", one, two)
	}
	var revisions []string
	for i := range 21 {
		revisions = append(revisions, fmt.Sprint(i))
	}
	if got := firstOf(revisions[:20]); strings.Contains(got, "more") || !strings.HasSuffix(got, ", 19") {
		t.Error(got)
	}
	if got := firstOf(revisions); !strings.HasSuffix(got, ", 19 and 1 more") {
		t.Error(got)
	}
}

// TestTakeRecordsRefused: records are replaced one by one only when the report names all of them.
func TestTakeRecordsRefused(t *testing.T) {
	rows := []compare.LostRecord{{HeldBy: []string{"elsewhere"}}}
	b := &rebuilder{w: workOn(5, peer(8)), ctx: context.Background()}
	var r *refusal.Error
	if err := b.takeRecords(&compare.LostRecords{Count: 2, Rows: rows}); !errors.As(err, &r) ||
		!strings.HasPrefix(r.Reason, "2 records are proven wrong, more than the 1 that are replaced") {
		t.Error(err)
	}
}
