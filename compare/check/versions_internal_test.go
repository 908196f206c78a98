package check

import (
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestVersionsFit: which versions of storage and cluster can be in one database, and on the members of one cluster.
func TestVersionsFit(t *testing.T) {
	versions := func(storage, cluster string) func(*Input) {
		return func(in *Input) {
			for _, m := range in.Members {
				m.DB.Meta.StorageVersion, m.DB.Cluster.Version = storage, cluster
			}
		}
	}
	both := func(ks ...Kind) []Kind { return append(slices.Clone(ks), ks...) }
	for name, c := range map[string]struct {
		change func(in *Input)
		want   []Kind
	}{
		"equal":                 {versions("3.6.0", "3.6.0"), nil},
		"3.5":                   {versions("", "3.5.0"), nil},
		"a downgrade":           {versions("3.7.0", "3.6.0"), both(KindStorageVersionTooHigh)},
		"two lines apart":       {versions("3.7.0", "3.5.0"), both(KindStorageVersionTooHigh)},
		"storage before 3.6":    {versions("3.5.0", "3.5.0"), both(KindStorageVersionImpossible)},
		"storage of a patch":    {versions("3.6.1", "3.6.0"), both(KindStorageVersionImpossible)},
		"storage of two parts":  {versions("3.6", "3.6.0"), both(KindStorageVersionImpossible)},
		"storage of four parts": {versions("3.6.0.0", "3.6.0"), both(KindStorageVersionImpossible)},
		"storage is too new": {versions("3.99.0", "3.7.0"), both(KindStorageVersionUnknown,
			KindStorageVersionTooHigh)},
		"storage of etcd 4":  {versions("4.0.0", "3.7.0"), both(KindStorageVersionImpossible)},
		"cluster is too new": {versions("", "3.99.0"), both(KindClusterVersionUnknown)},
		"cluster of etcd 4":  {versions("", "4.0.0"), both(KindClusterVersionImpossible)},
		"cluster of letters": {versions("", "x"), both(KindClusterVersionImpossible)},
		"different storage": {func(in *Input) {
			versions("3.6.0", "3.6.0")(in)
			in.Members[1].DB.Meta.StorageVersion = ""
			in.Members = append(in.Members, withDB(member("n3"), 9))
			in.Members[2].DB.Meta.StorageVersion, in.Members[2].DB.Cluster.Version = "3.7.0", "3.7.0"
		}, []Kind{KindStorageVersionsDiffer}},
		"a downgrade enabled": {func(in *Input) {
			versions("3.6.0", "3.6.0")(in)
			in.Members[1].DB.Cluster.DowngradeEnabled = true
		}, []Kind{KindDowngradeUnfinished}},
		"no database": {func(in *Input) { versions("4.0.0", "x")(in); in.Members[0].DB, in.Members[1].DB = nil, nil },
			nil},
	} {
		in := &Input{Members: Sources{withDB(member("n1"), 9), withDB(member("n2"), 9)}}
		c.change(in)
		r := runVersionsFit(in)
		var got []Kind
		for _, f := range r.Findings {
			got = append(got, f.Kind)
			if f.Kind == KindStorageVersionsDiffer && (!slices.Equal(f.Members, []string{"n1", "n3"}) ||
				f.Evidence[1].Observed != "3.7.0") {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if !slices.Equal(got, c.want) || (r.Outcome == Violated) != (c.want != nil) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestVersionAgainstLog: the cluster version is the one that the last entry, or else the newest snapshot, sets.
func TestVersionAgainstLog(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *evidence.Member, rp *replay.Result)
		want   Kind
		index  uint64
	}{
		"as the log sets": {func(*evidence.Member, *replay.Result) {}, "", 0},
		"a patch of it":   {func(m *evidence.Member, _ *replay.Result) { m.DB.Cluster.Version = "3.5.9" }, "", 0},
		"another": {func(m *evidence.Member, _ *replay.Result) { m.DB.Cluster.Version = "3.6.0" },
			KindClusterVersionAgainstLog, 8},
		"none, and no bucket": {func(m *evidence.Member, _ *replay.Result) { m.DB.Cluster.Version = "" }, "", 0},
		"that of a later one": {func(m *evidence.Member, _ *replay.Result) { m.DB.Cluster.Version = "3.7.0" },
			KindClusterVersionAboveIndex, 25},
		"one of before it": {func(m *evidence.Member, _ *replay.Result) { m.DB.Cluster.Version = "3.4.0" },
			KindClusterVersionAgainstLog, 8},
		"entries are missing": {func(m *evidence.Member, rp *replay.Result) {
			m.DB.Cluster.Version = "3.6.0"
			rp.Gaps = []replay.Gap{{From: 10, To: 11}}
		},
			"", 0},
		"not certainly there": {func(m *evidence.Member, _ *replay.Result) {
			m.DB.Cluster.Version, m.AppliedMin = "3.6.0", 7
		},
			"", 0},
		"just there": {func(m *evidence.Member, _ *replay.Result) { m.DB.Cluster.Version, m.AppliedMin = "3.6.0", 8 },
			KindClusterVersionAgainstLog, 8},
		"no survey": {func(m *evidence.Member, rp *replay.Result) { m.DB.Cluster.Version, rp.Survey = "3.6.0", nil },
			"", 0},
		"as the snapshot says": {func(m *evidence.Member, rp *replay.Result) {
			rp.Survey.Versions = nil
			addSnap(m, 15, &dumplog.V2Store{Version: "3.5.0"})
		},
			"", 0},
		"not as it says": {func(m *evidence.Member, rp *replay.Result) {
			rp.Survey.Versions = nil
			addSnap(m, 15, &dumplog.V2Store{Version: "3.4.0"})
		},
			KindClusterVersionAgainstLog, 15},
		"it says nothing": {func(m *evidence.Member, rp *replay.Result) {
			rp.Survey.Versions = nil
			addSnap(m, 15, &dumplog.V2Store{})
		},
			"", 0},
		"it has no store": {func(m *evidence.Member, rp *replay.Result) {
			rp.Survey.Versions = nil
			addSnap(m, 15, nil)
		},
			"", 0},
		"the log comes first": {func(m *evidence.Member, _ *replay.Result) {
			addSnap(m, 15, &dumplog.V2Store{Version: "3.4.0"})
		},
			"", 0},
	} {
		m := withDB(withLog(withSnapDir(t, "n1"), 30), 20)
		m.DB.Cluster.Version = "3.5.0"
		rp := &replay.Result{First: 1, Last: 30, Survey: &replay.Survey{Versions: []replay.VersionSet{
			{Index: 4, Version: "3.4.0"}, {Index: 8, Version: "3.5.0"}, {Index: 25, Version: "3.7.0"}}}}
		c.change(m, rp)
		fs := (&Input{Members: Sources{m}, Replay: rp}).clusterVersions().againstLog(m)
		if (len(fs) == 0) != (c.want == "") || len(fs) > 0 && (fs[0].Kind != c.want || fs[0].At.Index != c.index) {
			t.Errorf("%s: %+v, want %s", name, fs, c.want)
		}
	}
	if fs := (&Input{}).clusterVersions().againstLog(withDB(member("n1"), 20)); fs != nil {
		t.Errorf("without a replay: %+v", fs)
	}
}

// TestAlarmsOfNoMember: an alarm for an ID that the configuration does not name.
func TestAlarmsOfNoMember(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(m *evidence.Member)
		outcome Outcome
		about   int
	}{
		"of a member":       {func(*evidence.Member) {}, Holds, 0},
		"of a learner":      {func(m *evidence.Member) { m.DB.Alarms[0].MemberID = 3 }, Holds, 0},
		"of no member":      {func(m *evidence.Member) { m.DB.Alarms[0].MemberID = 9 }, Violated, 1},
		"of all":            {func(m *evidence.Member) { m.DB.Alarms[0].MemberID = 0 }, Holds, 0},
		"listed in bucket":  {bucketAlone(1), Holds, 0},
		"not in the bucket": {bucketAlone(2), Violated, 1},
		"no voters": {func(m *evidence.Member) {
			m.Membership.Voters, m.Membership.Bucket = nil, []dumplog.ID{2}
		}, Violated, 1},
		"no list":     {func(m *evidence.Member) { m.Membership = evidence.Membership{} }, NotChecked, 0},
		"no database": {func(m *evidence.Member) { m.DB.Alarms[0].MemberID, m.DB.Handle = 9, nil }, Holds, 0},
		"many": {func(m *evidence.Member) {
			for i := range maxPlaces + 1 {
				m.DB.Alarms = append(m.DB.Alarms, dumpdb.Alarm{MemberID: dumpdb.ID(100 + i)})
			}
		}, Violated, maxPlaces + 1},
	} {
		m := withDB(member("n1"), 9)
		m.Membership = evidence.Membership{RaftKnown: true, Voters: []dumplog.ID{1, 2}, Learners: []dumplog.ID{3}}
		m.DB.Alarms = []dumpdb.Alarm{{MemberID: 1, Type: 1}}
		c.change(m)
		r := runAlarmMembers(&Input{Members: Sources{m}})
		about := 0
		for _, f := range r.Findings {
			about += len(f.Facts.About)
			if len(f.Evidence) != min(about, maxPlaces) || f.More != max(0, about-maxPlaces) || f.Explanation == "" {
				t.Errorf("%s: %+v", name, f)
			}
			many := "n1: 21 alarms are raised for IDs of no known member"
			if (f.Title == many) != (about == maxPlaces+1) {
				t.Errorf("%s: %s", name, f.Title)
			}
		}
		if r.Outcome != c.outcome || about != c.about {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// bucketAlone is a member whose member list is known from its bucket only.
func bucketAlone(id dumplog.ID) func(*evidence.Member) {
	return func(m *evidence.Member) { m.Membership.RaftKnown, m.Membership.Bucket = false, []dumplog.ID{id} }
}

// TestNamesOfAlarms: lists of many names end with a number.
func TestNamesOfAlarms(t *testing.T) {
	var ids []dumplog.ID
	names := map[string]bool{}
	for i := range maxPlaces + 2 {
		ids = append(ids, dumplog.ID(i))
		names[string(rune('a'+i))] = true
	}
	if got := idList(ids[:3]); got != "0, 1, 2" {
		t.Errorf("%q", got)
	}
	if got, want := idList(ids), idList(ids[:maxPlaces])+", and 2 more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := firstNames(names); got != "a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t and 2 more" {
		t.Errorf("%q", got)
	}
	if got := firstNames(map[string]bool{"y": true, "x": true}); got != "x, y" {
		t.Errorf("%q", got)
	}
}

// TestLastAlarmEntry: the place of a finding about alarms is the last entry about them.
func TestLastAlarmEntry(t *testing.T) {
	marks := []replay.Mark{{Kind: "alarm", Index: 5, Term: 2},
		{Kind: "alarm", Index: 9, Term: 3}, {Kind: "term", Index: 12}}
	for want, rp := range map[At]*replay.Result{
		{}:                  nil,
		{Term: 3, Index: 9}: {Survey: &replay.Survey{Marks: marks}},
	} {
		if got := alarmIndex(rp); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if got := alarmIndex(&replay.Result{}); got != (At{}) {
		t.Errorf("%+v", got)
	}
}
