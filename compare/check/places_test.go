package check

import (
	"fmt"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

func TestPlaceFindings(t *testing.T) {
	damage := func(n int, kind dumplog.DamageKind) (ds []*dumplog.DamageError) {
		for i := range n {
			ds = append(ds, &dumplog.DamageError{Pos: dumplog.Pos{Segment: "s", Offset: int64(i)}, Kind: kind,
				LostFrom: uint64(2*i + 1)})
		}
		return ds
	}
	kind := func(d *dumplog.DamageError) string { return string(d.Kind) }
	one := func(d *dumplog.DamageError) Finding {
		return Finding{Title: fmt.Sprintf("%s at %d", d.Kind, d.Offset),
			Evidence: []Evidence{{Offset: Int64(d.Offset)}}}
	}
	few := placeFindings(damage(maxPlaces, dumplog.DamageCRC), kind, one, logRanges)
	if len(few) != maxPlaces {
		t.Errorf("%d findings of %d places", len(few), maxPlaces)
	}
	many := placeFindings(append(damage(100_000, dumplog.DamageCRC), damage(1, dumplog.DamageRecord)...), kind, one,
		logRanges)
	if len(many) != 2 || len(many[0].Evidence) != maxPlaces || *many[0].Evidence[19].Offset != 19 {
		t.Fatalf("%d findings, %d places in the first", len(many), len(many[0].Evidence))
	}
	for _, want := range []string{"the first of 100000 places", "lost entries 1, 3, 5,", "and 99980 more ranges",
		"offset 99999"} {
		if s := many[0].Title + many[0].Explanation; !strings.Contains(s, want) {
			t.Errorf("%q is not in %q", want, s)
		}
	}
	if got := rangesText([][2]uint64{{7, 9}, {1, 2}, {3, 3}, {8, 12}}); got != "1..3, 7..12" {
		t.Errorf("ranges %q", got)
	}
}

// TestGrouped: more findings that state the same of the same members than anyone reads are one, with their number; what
// is stated of another member stays apart, and so do findings of which there are few.
func TestGrouped(t *testing.T) {
	var fs []Finding
	for i := range 10_000 {
		fs = append(fs, Finding{Kind: KindJointConfiguration, Severity: Error, Members: []string{"a"},
			Title: fmt.Sprint("place ", i), Facts: Facts{About: []dumplog.ID{dumplog.ID(i)}},
			Evidence: []Evidence{{Offset: Int64(int64(i))}}})
	}
	for i := range maxAlike {
		fs = append(fs, Finding{Kind: KindJointConfiguration, Severity: Error, Members: []string{"b"},
			Title: fmt.Sprint("place ", i), Evidence: []Evidence{{}}})
	}
	got := Grouped(fs)
	if len(got) != 1+maxAlike {
		t.Fatalf("%d findings", len(got))
	}
	f := got[0]
	if len(f.Evidence) != maxPlaces || f.More != 10_000-maxPlaces || *f.Evidence[19].Offset != 19 ||
		len(f.Facts.About) != 10_000 || !strings.Contains(f.Title, "place 0 (the first of 10000 places)") {
		t.Errorf("%d places and %d more: %s", len(f.Evidence), f.More, f.Title)
	}
	if few := Grouped(fs[:maxAlike]); len(few) != maxAlike || few[0].Title != "place 0" {
		t.Errorf("%d of %d findings", len(few), maxAlike)
	}
}

// TestManyAlarms: each kind of alarm is one finding for many IDs, with their number and range, also where the log tells
// another state of them; those of IDs that are no member's are one, too.
func TestManyAlarms(t *testing.T) {
	const n = 5000
	m := &evidence.Member{Source: &evidence.Source{Name: "a"}, DB: &evidence.DB{}, AppliedMin: 2 * n}
	m.DB.Handle, m.Membership.Bucket = new(dumpdb.DB), []dumplog.ID{1, 2}
	for i := range uint64(n) {
		m.DB.Alarms = append(m.DB.Alarms, dumpdb.Alarm{MemberID: dumpdb.ID(i + 1), Type: 1},
			dumpdb.Alarm{MemberID: dumpdb.ID(i + 1), Type: 2})
	}
	in := &Input{Members: []*evidence.Member{m}, MaxRows: 20}
	for name, r := range map[string]Result{"M06": runAlarms(in), "K08": runAlarmMembers(in)} {
		want := map[string]int{"M06": 2, "K08": 1}[name]
		if len(r.Findings) != want || r.Outcome != Violated {
			t.Fatalf("%s: %d findings", name, len(r.Findings))
		}
		for _, f := range r.Findings {
			if len(f.Evidence) > 20 || len(f.Members) != 1 {
				t.Errorf("%s: %d places, members %q", name, len(f.Evidence), f.Members)
			}
			if s := f.Title + f.Explanation; !strings.Contains(s, "5000") && !strings.Contains(s, "9996") {
				t.Errorf("%s: no number in %s", name, s)
			}
		}
	}
	if f := runAlarms(in).Findings[0]; !strings.Contains(f.Explanation, "of members 1 to 1388") {
		t.Errorf("no range: %s", f.Explanation)
	}
	var log []replay.AlarmState
	for i := range uint64(n) {
		log = append(log, replay.AlarmState{Index: i + 1, Member: dumplog.ID(i + 1), Type: 1, Raised: i%2 == 0})
	}
	wrong, checked := alarmsAgainst(in.Members, &replay.Result{First: 1, Last: 1 << 40}, log)
	if len(wrong) != n/2 || !checked || wrong[0].At.Index != 2 {
		t.Errorf("%d of %d alarms are wrong, the first at %+v", len(wrong), n/2, wrong[0].At)
	}
}
