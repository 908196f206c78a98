package restore

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// TestLosses: what the new cluster lacks is said with the reason, and nothing else is.
func TestLosses(t *testing.T) {
	backup, dataDir := &evidence.Parts{Kind: evidence.KindBackup}, &evidence.Parts{Kind: evidence.KindDataDir}
	for _, tc := range []struct {
		name          string
		r             Report
		facts         evidence.Facts
		up            rebuild.CaughtUp
		lost, notes   []string
		log, isBehind bool
	}{
		{"nothing", Report{}, evidence.Facts{}, rebuild.CaughtUp{Parts: backup}, nil,
			[]string{"the revision is not raised", "move the old data dirs aside"}, false, false},
		{"revisions", Report{Backup: Backup{Revision: 7}, Revision: Revision{GivenUp: 3, Start: 20,
			MarkCompacted: true}},
			evidence.Facts{}, rebuild.CaughtUp{Parts: backup}, []string{"3 revisions, 8 to 10, that surviving",
				"the history of keys before revision 20"}, []string{"move the old"}, false, false},
		{"revisions over those that were skipped", Report{Backup: Backup{Revision: 7}, Revision: Revision{GivenUp: 3,
			Raised: 5}}, evidence.Facts{}, rebuild.CaughtUp{Parts: backup},
			[]string{"3 revisions, 8 to 15 without the 5 that an earlier restore skipped, that"},
			[]string{"the revision is not", "move the old"}, false, false},
		{"the end of a log", Report{}, evidence.Facts{}, rebuild.CaughtUp{Parts: dataDir, Unproven: 2, Executed: 1,
			Commit: 9},
			[]string{"2 entries at the end of the log, above entry 9"},
			[]string{"the revision is not", "1 committed entries above", "move the old"}, true, true},
		{"a whole log", Report{}, evidence.Facts{}, rebuild.CaughtUp{Parts: dataDir}, nil,
			[]string{"the revision is not", "move the old"}, true, false},
		{"members, leases, a downgrade", Report{}, evidence.Facts{Downgrade: "3.5.0",
			Leases: make([]evidence.LeaseFacts, 2),
			Membership: evidence.MembershipFacts{Members: []dumpdb.Member{{Name: "a", ID: 1},
				{Name: "b", ID: 2, IsLearner: true}}}}, rebuild.CaughtUp{Parts: backup},
			[]string{"learner b (2): add it again"},
			[]string{"the revision is not", "2 leases restart with the full time", "the downgrade to 3.5.0 that was",
				"move the old"}, false, false},
	} {
		tc.r.losses(&compare.Report{Members: []evidence.Facts{tc.facts}}, &tc.up)
		for what, x := range map[string]struct{ got, want []string }{"lost": {tc.r.GivesUp, tc.lost},
			"notes": {tc.r.Notes, tc.notes}} {
			same := slices.EqualFunc(x.got, x.want, strings.HasPrefix)
			if !same {
				t.Errorf("%s: %s are %q, want %q", tc.name, what, x.got, x.want)
			}
		}
		if (tc.r.Log != nil) != tc.log || tc.r.Behind() != tc.isBehind {
			t.Errorf("%s: log %v, behind %v", tc.name, tc.r.Log, tc.r.Behind())
		}
	}
}

// TestTakeBackup: which layers of a backup may be wrong, and what accepts that.
func TestTakeBackup(t *testing.T) {
	revision := int64(7)
	for _, tc := range []struct {
		name   string
		change func(v *compare.Report)
		o      Options
		refuse string // "" is taken
		note   string
	}{
		{"whole", func(*compare.Report) {}, Options{}, "", ""},
		{"no database", func(v *compare.Report) { v.Members[0].DB = nil }, Options{Broken: true}, "the verdict", ""},
		{"no member", func(v *compare.Report) { v.Members = nil }, Options{Broken: true}, "the verdict", ""},
		{"no backup", func(v *compare.Report) { v.Backup = nil }, Options{Broken: true}, "the verdict", ""},
		{"damaged pages", func(v *compare.Report) { v.Backup.Layers[1].Name = "pages" }, Options{Broken: true},
			"pages: wrong", ""},
		{"a warning about a page", func(v *compare.Report) {
			v.Backup.Layers[1].Name, v.Backup.Layers[1].Checks = "pages", []check.ID{check.D01}
			v.Findings = []check.Finding{{Check: check.D01, Severity: check.Warning}}
		}, Options{}, "", "pages: wrong"},
		{"and an error", func(v *compare.Report) {
			v.Backup.Layers[1].Name, v.Backup.Layers[1].Checks = "pages", []check.ID{check.D01}
			v.Findings = []check.Finding{{Check: check.D01, Severity: check.Warning},
				{Check: check.D01, Severity: check.Error}}
		}, Options{}, "pages: wrong", ""},
		{"contents that contradict each other", func(v *compare.Report) { v.Backup.Layers[1].Name = "mvcc" }, Options{},
			"mvcc: wrong", ""},
		{"they are accepted", func(v *compare.Report) { v.Backup.Layers[1].Name = "mvcc" }, Options{Broken: true}, "",
			"mvcc: wrong"},
		{"no revision", func(v *compare.Report) { v.Members[0].DB.CurrentRevision = nil }, Options{Broken: true},
			"the revision of the backup cannot be read", ""},
		{"no trailer", func(v *compare.Report) { v.Backup.Trailer = "absent" }, Options{}, "the sha256 trailer of", ""},
		{"a data dir", func(v *compare.Report) {
			v.Backup.Trailer, v.Sources[0].Kind = "absent", evidence.KindDataDir
		}, Options{}, "a is a data dir: no sha256 proves its content", ""},
		{"that is accepted", func(v *compare.Report) { v.Backup.Trailer = "absent" }, Options{Unproven: true}, "",
			"the sha256 trailer of the backup: absent"},
		{"CORRUPT", func(v *compare.Report) {
			v.Members[0].Alarms = []evidence.AlarmFacts{{Alarm: "CORRUPT", MemberID: 3}}
		}, Options{}, "the backup holds a CORRUPT alarm of member 3", ""},
		{"NOSPACE", func(v *compare.Report) {
			v.Members[0].Alarms = []evidence.AlarmFacts{{Alarm: "NOSPACE", MemberID: 3}}
		}, Options{}, "", "alarm NOSPACE of member 3 is not taken along"},
	} {
		v := &compare.Report{Verdict: compare.Verdict{Summary: "the verdict"},
			Members: []evidence.Facts{{DB: &evidence.DBFacts{CurrentRevision: &revision}}},
			Sources: []compare.Source{{Name: "a"}},
			Backup: &compare.Backup{Trailer: "match", Layers: []compare.Layer{
				{Name: "pages", Outcome: check.Holds, Says: "right"}, {Name: "size", Outcome: check.Violated,
					Says: "wrong"}}}}
		tc.change(v)
		r := &Report{}
		err := r.takeBackup(v, v.Sources[0].Kind, &tc.o)
		var refused *refusal.Error
		if tc.refuse != "" && (!errors.As(err, &refused) || !strings.HasPrefix(refused.Reason, tc.refuse)) ||
			tc.refuse == "" && (err != nil || r.Backup.Revision != revision) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.refuse)
		}
		if notes := strings.Join(r.Notes, "\n"); tc.refuse == "" && (!strings.HasPrefix(notes, tc.note) ||
			tc.note == "" && notes != "") {
			t.Errorf("%s: notes %q, want %q", tc.name, notes, tc.note)
		}
	}
}

// TestCheckMembers: peer URLs are those that etcd takes, and unusual clusters get a note.
func TestCheckMembers(t *testing.T) {
	for _, tc := range []struct {
		members []PlanMember
		refuse  string
		notes   string
	}{
		{nil, "no members are named", ""},
		{[]PlanMember{{Name: "a"}}, "member a has no peer URL", ""},
		{[]PlanMember{{Name: "a", PeerURLs: []string{"ftp://h:1"}}}, "ftp://h:1 is neither http nor https", ""},
		{[]PlanMember{{Name: "a", PeerURLs: []string{"http://h"}}}, "http://h has no port", ""},
		{[]PlanMember{{Name: "a", PeerURLs: []string{"http://h:"}}}, "http://h: has no port", ""},
		{[]PlanMember{{Name: "a", PeerURLs: []string{"http://h:1/p"}}}, "http://h:1/p has a path", ""},
		{[]PlanMember{{Name: "a", PeerURLs: []string{"http://h:\x00"}}}, "member a: ", ""},
		{[]PlanMember{{Name: "a", PeerURLs: []string{"unix://h/p"}}}, "", ""},
		{[]PlanMember{{Name: "a", PeerURLs: []string{"http://127.0.0.1:1"}}}, "", ""},
		{[]PlanMember{{Name: "a", PeerURLs: []string{"http://h:1"}}, {Name: "b", PeerURLs: []string{"http://i:1"}}}, "",
			"2 members tolerate no more failures than 1"},
		{[]PlanMember{{Name: "a", PeerURLs: []string{"http://h:1"}}, {Name: "b", PeerURLs: []string{"http://i:1"}},
			{Name: "c", PeerURLs: []string{"http://localhost:1"}}}, "",
			"peer URL http://localhost:1 of c reaches no other host"},
	} {
		notes, err := (&Plan{Members: tc.members}).check()
		var refused *refusal.Error
		if tc.refuse != "" && (!errors.As(err, &refused) || !strings.Contains(refused.Reason, tc.refuse)) ||
			tc.refuse == "" && (err != nil || strings.Join(notes, "\n") != tc.notes) {
			t.Errorf("%+v: %q %v, want %q, %q", tc.members, notes, err, tc.notes, tc.refuse)
		}
	}
}

// TestRaiseLimit: a revision is an int64.
func TestRaiseLimit(t *testing.T) {
	for bump, fits := range map[uint64]bool{math.MaxInt64 - 7: true, math.MaxInt64 - 6: false, 0: true} {
		r, err := revisionFor(7, &survivors{}, &Options{Bump: &bump})
		if (err == nil) != fits || fits && (r.Start != 7+int64(bump) || r.MarkCompacted != (bump > 0)) {
			t.Errorf("raised by %d: %+v %v", bump, r, err)
		}
	}
}

// TestRevisionFor: the new cluster starts above every revision that clients may have seen.
func TestRevisionFor(t *testing.T) {
	n := func(v uint64) *uint64 { return &v }
	for _, tc := range []struct {
		newest int64
		o      Options
		want   Revision // of a backup at revision 7
		refuse bool
	}{
		{0, Options{}, Revision{Bump: BlindBump, Reserve: BlindBump, Start: 7 + BlindBump, MarkCompacted: true}, false},
		{10, Options{Reserve: 5}, Revision{Bump: 8, Reserve: 5, Start: 15, MarkCompacted: true}, false},
		{5, Options{Reserve: 5}, Revision{Bump: 5, Reserve: 5, Start: 12, MarkCompacted: true}, false},
		{7, Options{}, Revision{Start: 7}, false},
		{10, Options{Bump: n(3)}, Revision{}, true},
		{10, Options{Bump: n(3), LowRevision: true}, Revision{Bump: 3, Start: 10, MarkCompacted: true}, false},
		{10, Options{Bump: n(1), LowRevision: true}, Revision{Bump: 1, Start: 8, MarkCompacted: true}, false},
		{10, Options{Bump: n(4)}, Revision{Bump: 4, Reserve: 1, Start: 11, MarkCompacted: true}, false},
		{7, Options{Bump: n(0)}, Revision{Start: 7}, false},
		{0, Options{Bump: n(4)}, Revision{Bump: 4, Reserve: 4, Start: 11, MarkCompacted: true}, false},
	} {
		got, err := revisionFor(7, &survivors{newest: tc.newest, on: "a", written: 2, raised: 1}, &tc.o)
		tc.want.Backup, tc.want.NewestSeen, tc.want.SeenOn, tc.want.GivenUp, tc.want.Raised = 7, tc.newest, "a", 2, 1
		var r *refusal.Error
		if errors.As(err, &r) != tc.refuse || !tc.refuse && (err != nil || got != tc.want) ||
			tc.refuse && !strings.HasPrefix(r.Hint, "raise by more than 3,") {
			t.Errorf("newest %d, %+v: %+v %v, want %+v", tc.newest, tc.o, got, err, tc.want)
		}
	}
}

// TestListenURLs: etcd listens on addresses, so a host name becomes all of them.
func TestListenURLs(t *testing.T) {
	in := []string{"http://host:1", "https://host:2", "http://10.0.0.1:3", "http://localhost:4", "unix://sock:5"}
	want := "http://0.0.0.0:1,https://0.0.0.0:2,http://10.0.0.1:3,http://localhost:4,unix://sock:5"
	if got := listenURLs(in); got != want {
		t.Error(got)
	}
}

// TestSurvivorWithoutDatabase: it is named, and its ID is not used again.
func TestSurvivorWithoutDatabase(t *testing.T) {
	s := &survivors{members: map[uint64]string{}}
	m := &evidence.Member{Source: &evidence.Source{Name: "old"}, MemberID: 5,
		Membership: evidence.Membership{Bucket: []dumplog.ID{6}}}
	if err := s.add(t.Context(), m); err != nil || s.members[5] != "old" || s.members[6] != "old" || s.newest != 0 ||
		len(s.notes) != 1 || !strings.HasPrefix(s.notes[0], "old has no database that opens") {
		t.Errorf("%+v %v", s, err)
	}
}

// TestServersFor: the newest of the versions that a database shows counts.
func TestServersFor(t *testing.T) {
	v := func(s string) *string { return &s }
	for _, tc := range []struct {
		wrote, storage *string
		cluster, want  string
	}{
		{nil, nil, "", ""},
		{v("3.5.9"), nil, "3.4.0", "3.5, or 3.6"},
		{nil, v("3.6.0"), "3.5.0", "3.6, or 3.7"},
		{nil, nil, "3.4.0", "3.4, or 3.5"},
	} {
		m := &evidence.Facts{ClusterVersion: tc.cluster, DB: &evidence.DBFacts{StorageVersion: tc.storage}}
		m.WroteBy.Etcd = tc.wrote
		if got := serversFor(m); got != tc.want {
			t.Errorf("%+v: %q, want %q", m, got, tc.want)
		}
	}
}
