package verdict

import (
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/shell"
)

// TestClassOfABackup: the trailer decides between a good backup and one whose bytes nothing proves. A cause is named
// where there is one.
func TestClassOfABackup(t *testing.T) {
	raw := []Cause{{ID: cause.BackupWithoutHash, Certainty: cause.Proof}, {ID: cause.NospaceAlarm}}
	for name, c := range map[string]struct {
		health  check.Health
		trailer string
		causes  []Cause
		class   check.Class
		cause   cause.ID
	}{
		"a trailer that fits":       {check.Healthy, "match", nil, check.ClassBackupGood, ""},
		"none, without a cause":     {check.Healthy, "absent", nil, check.ClassBackupUnverifiable, ""},
		"none":                      {check.Healthy, "absent", raw, check.ClassBackupUnverifiable, cause.BackupWithoutHash},
		"something is wrong":        {check.Unhealthy, "match", raw, check.ClassBackupDamaged, ""},
		"something was not decided": {check.HealthUnknown, "match", raw, check.ClassInconclusive, ""},
	} {
		m := &evidence.Member{DB: &evidence.DB{Trailer: dumpdb.Trailer{State: c.trailer}}}
		j := &judge{Input: &Input{Input: &check.Input{Members: []*evidence.Member{m}}, Backup: true, Causes: c.causes},
			Verdict: Verdict{Health: c.health, Class: check.ClassInconclusive}}
		j.backupClass()
		v := &j.Verdict
		if v.Class != c.class || (v.Cause == nil) != (c.cause == "") || v.Cause != nil && *v.Cause != c.cause {
			t.Errorf("%s: %s, cause %v", name, v.Class, v.Cause)
		}
	}
}

// TestWarnedBackup: a layer with a warning does not hold, and the verdict does not say so.
func TestWarnedBackup(t *testing.T) {
	warning := check.Finding{Severity: check.Warning, Title: "there is an odd row"}
	noTrailer := check.Finding{Severity: check.Warning, Class: check.ClassBackupUnverifiable, Title: "no trailer"}
	for name, c := range map[string]struct {
		trailer string
		finding []check.Finding
		want    string
	}{
		"good": {"match", nil, "every layer of the backup holds"},
		"a warning": {"match", []check.Finding{warning},
			"no layer of the backup has an error; there is an odd row"},
		"no trailer": {"absent", []check.Finding{noTrailer}, "every check of the content holds"},
		"no trailer, and a warning": {"absent", []check.Finding{noTrailer, warning},
			"no check of the content finds an error; there is an odd row"},
	} {
		m := &evidence.Member{DB: &evidence.DB{Trailer: dumpdb.Trailer{State: c.trailer}}}
		in := &Input{Input: &check.Input{Members: []*evidence.Member{m}}, Backup: true, Findings: c.finding}
		j := &judge{Input: in, Verdict: Verdict{Health: check.Healthy}}
		if j.backupClass(); j.Verdict.Statement != c.want {
			t.Errorf("%s: %s", name, j.Verdict.Statement)
		}
	}
}

// TestWrongOutside: where only backups are wrong, no member has to be repaired.
func TestWrongOutside(t *testing.T) {
	const backup = "Do not restore from this backup: n3"
	rank := func(member string, named ...string) Rank { return Rank{Member: member, Usable: true, NamedBy: named} }
	for name, c := range map[string]struct {
		change func(ad *advice)
		want   []string
		says   string
	}{
		"the backup alone": {func(*advice) {}, []string{"n3"}, backup},
		"the data dir of a removed member": {func(ad *advice) {
			m := ad.Members[2]
			m.Source.Kind, m.WAL.Log = evidence.KindDataDir, &dumplog.Log{}
			ad.Members[0].Membership.Removed = []dumplog.ID{m.MemberID}
		}, []string{"n3"}, "Leave out what is of a member that was removed, and start no server on it: n3"},
		"another data dir":            {func(ad *advice) { ad.Members[2].Source.Kind = evidence.KindDataDir }, nil, ""},
		"what it alone holds is lost": {func(ad *advice) { ad.Best.Lost.CommittedEntries = 1 }, nil, ""},
		"a member lags too": {func(ad *advice) {
			ad.Best.Members, ad.Best.Ranking[1].Behind = ad.Best.Members[:1], 3
		}, []string{"n3"}, backup},
		"a member is named too": {func(ad *advice) { ad.Best.Ranking[1].NamedBy = []string{"K01-1"} }, nil, ""},
		"a member lacks an entry": {func(ad *advice) {
			ad.Best.Ranking[1].Lacks.CommittedEntries = 1
		}, nil, ""},
		"a member cannot serve": {func(ad *advice) { ad.Best.Ranking[1].Usable = false }, nil, ""},
		"a member is not so good": {func(ad *advice) {
			ad.Best.Members = ad.Best.Members[:1]
		}, nil, ""},
		"no backup is named": {func(ad *advice) { ad.Best.Ranking[2].NamedBy = nil }, nil, ""},
		"no best":            {func(ad *advice) { ad.Best = nil }, nil, ""},
		"a finding about members": {func(ad *advice) {
			ad.Findings = append(ad.Findings, check.Finding{Severity: check.Critical, Class: check.ClassWALDamage,
				Members: []string{"n1", "n2"}})
		}, nil, ""},
		"a warning about members": {func(ad *advice) {
			ad.Findings = append(ad.Findings, check.Finding{Severity: check.Warning, Class: check.ClassWALDamage,
				Members: []string{"n1"}})
		}, []string{"n3"}, backup},
		"backups only": {func(ad *advice) {
			ad.Best.Members, ad.Best.Ranking = nil, ad.Best.Ranking[2:]
		}, nil, ""},
	} {
		ad := adviceFor(evidence.KindDataDir, evidence.KindDataDir, evidence.KindBackup)
		ad.Best = &Best{Members: []string{"n1", "n2"},
			Ranking: []Rank{rank("n1"), rank("n2"), rank("n3", "K03-1")}}
		ad.Findings = []check.Finding{{Severity: check.Critical, Class: check.ClassDataDivergence,
			Members: []string{"n3"}}}
		ad.Verdict.Class = check.ClassDataDivergence
		ad.Facts = []evidence.Facts{{Name: "n1"}, {Name: "n2"}, {Name: "n3"}}
		c.change(ad)
		if got := ad.wrongOutside(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if len(c.want) == 0 {
			continue
		}
		ad.next()
		var said []string
		for _, n := range ad.Next {
			said = append(said, n.Text)
		}
		all := strings.Join(said, "\n")
		if !strings.HasPrefix(all, "no data dir of a member at hand has to be repaired. "+c.says) ||
			strings.Contains(all, "stop") {
			t.Errorf("%s: %s", name, all)
		}
	}
}

// TestByHandWithoutBackups: a backup is no member that can be removed and added again.
func TestByHandWithoutBackups(t *testing.T) {
	ad := adviceFor(evidence.KindDataDir, evidence.KindDataDir, evidence.KindBackup)
	ad.Facts = []evidence.Facts{{Name: "n1"}, {Name: "n2"}, {Name: "n3"}}
	ad.byHand("n1", []string{"n2", "n3"}, false)
	of := map[string]bool{}
	for _, n := range ad.Next {
		of[n.Member] = true
	}
	if !of["n2"] || of["n3"] {
		t.Errorf("%v", of)
	}
	ad.Next = nil
	if ad.byHand("n1", []string{"n3"}, true); len(ad.Next) > 0 {
		t.Errorf("%+v", ad.Next)
	}
}

// TestGatherNextToAWrongBackup: where most voters are not at hand, their data dirs are asked for.
func TestGatherNextToAWrongBackup(t *testing.T) {
	for voters, want := range map[int]bool{1: false, 3: true} {
		ad := adviceFor(evidence.KindDataDir, evidence.KindBackup)
		for i := range voters {
			ad.Members[0].Membership.Voters = append(ad.Members[0].Membership.Voters, dumplog.ID(0xa1+10*i))
		}
		adviceOf(ad, func(add func(string, shell.Command)) { ad.nextWrongOutside([]string{"n2"}, add) })
		if got := slices.ContainsFunc(ad.Next, func(n Next) bool { return n.Gathers }); got != want {
			t.Errorf("%d voters: %v", voters, ad.Next)
		}
	}
}
