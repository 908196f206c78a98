package cause

import (
	"fmt"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestRefusedByTheProposer: an entry that its proposer alone refused asks for a revision that no member had then.
func TestRefusedByTheProposer(t *testing.T) {
	applied := replay.Outcome{State: replay.Applied, Sig: 1, Rev: 40}
	refused, unknown := replay.Outcome{State: replay.Refused}, replay.Outcome{State: replay.Unknown}
	for name, c := range map[string]struct {
		outcomes []replay.Outcome
		ranges   []int64
		compact  int64
		proposer dumplog.ID
		want     int
	}{
		"above the revision":      {[]replay.Outcome{applied, refused}, []int64{40}, -1, 2, 1},
		"at the revision":         {[]replay.Outcome{applied, refused}, []int64{39}, -1, 2, -1},
		"one of several is":       {[]replay.Outcome{applied, refused}, []int64{39, 40}, -1, 2, 1},
		"below what is compacted": {[]replay.Outcome{applied, refused}, []int64{29}, 30, 2, 1},
		"at what is compacted":    {[]replay.Outcome{applied, refused}, []int64{30}, 30, 2, -1},
		"another refused it":      {[]replay.Outcome{applied, refused}, []int64{40}, -1, 1, -1},
		"both refused it":         {[]replay.Outcome{refused, refused}, []int64{40}, -1, 2, -1},
		"no member knows of it":   {[]replay.Outcome{unknown, refused}, []int64{40}, -1, 2, -1},
		"the proposer is unknown": {[]replay.Outcome{applied, refused}, []int64{40}, -1, 0, -1},
		"one has not come to it":  {[]replay.Outcome{applied, refused, {State: replay.NotApplied}}, []int64{40}, -1, 2, 1},
		"outside of one's history": {[]replay.Outcome{applied, refused, {State: replay.OutsideHistory}}, []int64{40},
			-1, 2, 1},
		"all applied it": {[]replay.Outcome{applied, applied}, []int64{40}, -1, 2, -1},
	} {
		in := sources("n1", "n2", "n3")
		e := &replay.Event{Outcomes: c.outcomes, RangeRevisions: c.ranges, Compacted: c.compact, Proposer: c.proposer}
		if got := refusedAlone(in, e); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestAppliedBeyondTheLog: another log, or the database itself, shows that entries after the end of a log exist.
func TestAppliedBeyondTheLog(t *testing.T) {
	for name, c := range map[string]struct {
		change func(in *Input)
		want   bool
	}{
		"nothing":                    {func(*Input) {}, false},
		"another log":                {func(in *Input) { in.Members[1].WAL.Summary.LastIndex = 120 }, true},
		"one that ends right before": {func(in *Input) { in.Members[1].WAL.Summary.LastIndex = 119 }, false},
		"of another cluster": {func(in *Input) {
			in.Members[1].WAL.Summary.LastIndex, in.Members[1].ClusterID = 120, 9
		}, false},
		"extra records":    {func(in *Input) { in.Replay.Members[0].Extra = []int64{5} }, true},
		"those of another": {func(in *Input) { in.Replay.Members[1].Extra = []int64{5} }, false},
		"no replay":        {func(in *Input) { in.Replay = nil }, false},
	} {
		in := sources("n1", "n2")
		index := uint64(120)
		in.Members[0].DB.Meta.ConsistentIndex = &index
		c.change(in)
		if got := wasApplied(in, in.Members[0]); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	m := sources("n1").Members[0]
	for voters := range 3 {
		m.Membership = evidence.Membership{RaftKnown: true, Voters: make([]dumplog.ID, voters)}
		if got := oneVoter(m); got != (voters == 1) {
			t.Errorf("%d voters: one %t", voters, got)
		}
	}
	if m.Membership = (evidence.Membership{Voters: make([]dumplog.ID, 1)}); oneVoter(m) {
		t.Error("a voter of an unknown configuration")
	}
}

// TestAlarmsAlone: CORRUPT decides a diagnosis only if nothing else contradicts the log or the other members.
func TestAlarmsAlone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(in *Input)
		want   bool
	}{
		"CORRUPT":        {func(*Input) {}, true},
		"NOSPACE":        {func(in *Input) { in.Members[1].DB.Alarms[0].Type = alarmNoSpace }, false},
		"none":           {func(in *Input) { in.Members[1].DB.Alarms = nil }, false},
		"keys differ":    {func(in *Input) { in.Findings[check.K01] = make([]check.Finding, 1) }, false},
		"leases differ":  {func(in *Input) { in.Findings[check.L03] = make([]check.Finding, 1) }, false},
		"something else": {func(in *Input) { in.Findings[check.M06] = make([]check.Finding, 1) }, true},
	} {
		in := sources("n1", "n2")
		in.Members[0].DB = nil
		in.Members[1].DB.Alarms = []dumpdb.Alarm{{Type: alarmCorrupt}}
		c.change(in)
		if got := onlyAlarm(in); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	in := sources("n1", "n2")
	in.Members[0].MemberID = 0
	for id, want := range map[dumplog.ID]string{0: "", 2: "n2", 9: "9"} {
		if got := memberLabel(in, id); got != want {
			t.Errorf("member %s: %q, want %q", id, got, want)
		}
	}
	for i := range maxNamed + 5 {
		in.Members[1].DB.Alarms = append(in.Members[1].DB.Alarms, dumpdb.Alarm{Type: alarmNoSpace,
			MemberID: dumpdb.ID(i + 10)})
	}
	if m := nospaceAlarm.Match(in); m == nil || len(m.Members) != maxNamed {
		t.Errorf("named: %+v", m)
	}
}

// TestDeletesBefore: a delete of a user or role can be seen late by the entries right after it, of that user.
func TestDeletesBefore(t *testing.T) {
	entry := func(index uint64, kind dumplog.Kind, user string) replay.AuthEntry {
		return replay.AuthEntry{Index: index, Req: &dumplog.Request{Kind: kind, Auth: &dumplog.AuthRequest{User: user}}}
	}
	for name, c := range map[string]struct {
		auth replay.AuthEntry
		want bool
	}{
		"its user":          {entry(19, dumplog.KindAuthUserDelete, "u"), true},
		"its role":          {entry(19, dumplog.KindAuthUserRevokeRole, "u"), true},
		"another user":      {entry(19, dumplog.KindAuthUserDelete, "v"), false},
		"a role":            {entry(19, dumplog.KindAuthRoleDelete, ""), true},
		"a permission":      {entry(19, dumplog.KindAuthRoleRevokePermission, ""), true},
		"a grant":           {entry(19, dumplog.KindAuthRoleGrantPermission, ""), false},
		"the entry itself":  {entry(20, dumplog.KindAuthRoleDelete, ""), false},
		"as long as before": {entry(20-lateWindow, dumplog.KindAuthRoleDelete, ""), true},
		"longer before":     {entry(19-lateWindow, dumplog.KindAuthRoleDelete, ""), false},
		"nothing was decoded": {replay.AuthEntry{Index: 19, Req: &dumplog.Request{Kind: dumplog.KindAuthRoleDelete}},
			false},
	} {
		s := &replay.Survey{Auth: []replay.AuthEntry{c.auth}}
		if got := deletedBefore(s, &replay.Event{Index: 20, User: "u"}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestFirstDepartures: the first entry that some applied and others refused for want of permission, unless members
// lack an earlier one.
func TestFirstDepartures(t *testing.T) {
	applied := replay.Outcome{State: replay.Applied}
	refused := func(r replay.Reason) replay.Outcome { return replay.Outcome{State: replay.Refused, Reason: r} }
	event := func(index uint64, lacking []int, os ...replay.Outcome) *replay.Event {
		return &replay.Event{Index: index, Lacking: lacking, Outcomes: os}
	}
	parted := event(7, nil, applied, refused(replay.ReasonPermission))
	for name, c := range map[string]struct {
		events []*replay.Event
		want   bool
	}{
		"it parts":             {[]*replay.Event{event(5, nil, applied, applied), parted}, true},
		"one lacks it":         {[]*replay.Event{event(7, []int{1}, applied, refused(replay.ReasonPermission))}, true},
		"one lacks an earlier": {[]*replay.Event{event(5, []int{1}, applied, applied), parted}, false},
		"for another reason":   {[]*replay.Event{event(7, nil, applied, refused(replay.ReasonOldAuth))}, false},
		"all refuse":           {[]*replay.Event{event(7, nil, refused(replay.ReasonPermission))}, false},
		"a reason of no refusal": {[]*replay.Event{event(7, nil, applied,
			replay.Outcome{State: replay.Unknown, Reason: replay.ReasonPermission})}, false},
	} {
		in := sources("n1", "n2")
		in.Replay.Events = c.events
		if got := firstDeparture(in); (got != nil) != c.want || got != nil && got.Index != 7 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestOneHost: two clusters share a host if one lists the other's member at its peer URL.
func TestOneHost(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m, o *evidence.Member)
		want   bool
	}{
		"the same URL":        {func(_, _ *evidence.Member) {}, true},
		"of the same cluster": {func(_, o *evidence.Member) { o.ClusterID = 5 }, false},
		"another URL": {func(_, o *evidence.Member) {
			o.Membership.PeerURLs = map[dumplog.ID][]string{8: {"http://b"}}
		}, false},
		"of another member of it": {func(m, _ *evidence.Member) { m.MemberID = 3 }, false},
	} {
		in := sources("n1", "n2")
		m, o := in.Members[0], in.Members[1]
		m.ClusterID, o.ClusterID = 5, 6
		m.Membership.PeerURLs = map[dumplog.ID][]string{1: {"http://a"}}
		o.Membership.PeerURLs = map[dumplog.ID][]string{8: {"http://c"}, 9: {"http://b", "http://a"}}
		c.change(m, o)
		if got := sameHost(m, o); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	m := sources("n1").Members[0]
	for i, want := range []bool{false, true, false} {
		m.Membership.Bucket = [][]dumplog.ID{nil, {2, 3}, {2, 1}}[i]
		if got := listsOthersOnly(m); got != want {
			t.Errorf("the database lists %v: others only %t", m.Membership.Bucket, got)
		}
	}
	m.Membership.Bucket = []dumplog.ID{1, 2, 3}
	m.WAL.Conf = []evidence.ConfEntry{{Change: dumplog.ConfChange{NodeID: 2}},
		{Refused: true, Change: dumplog.ConfChange{NodeID: 3}}}
	if got := membersWithoutConfChange(m); !slices.Equal(got, []dumplog.ID{1, 3}) {
		t.Errorf("without a conf change: %v", got)
	}
}

// TestRepeatedOn35: a restart of 3.5 explains a higher auth revision if it explains all of it.
func TestRepeatedOn35(t *testing.T) {
	for name, c := range map[string]struct {
		change func(in *Input)
		want   bool
	}{
		"a restart":       {func(*Input) {}, true},
		"not replayed":    {func(in *Input) { in.Replay.Members[0].Checked = false }, false},
		"a rest":          {func(in *Input) { in.Replay.Members[0].Unexplained = 1 }, false},
		"no rise":         {func(in *Input) { in.Replay.Members[0].Jumps = nil }, false},
		"another release": {func(in *Input) { in.Members[0].Version.Minor = 4 }, false},
		"auth alone":      {func(in *Input) { in.Replay.Members[0].Jumps[0].AllKinds = false }, false},
		"no replay":       {func(in *Input) { in.Replay = nil }, false},
	} {
		in := sources("n1")
		in.Members[0].Version = evidence.Version{Minor: 5, Text: "3.5.x"}
		in.Replay.Members[0].Jumps = []replay.Jump{{AllKinds: true}}
		c.change(in)
		if got := repeated35(in); (fmt.Sprint(got) == "[n1]") != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, c := range map[string]struct {
		finding check.ID
		minor   int
		want    bool
	}{"repeated": {check.C04, 5, true}, "frozen": {check.C01, 5, true}, "nothing": {check.K01, 5, false},
		"of 3.4": {check.C04, 4, false}} {
		in := sources("n1", "n2")
		in.Members[1].Version.Minor = c.minor
		for _, id := range []check.ID{check.A01, c.finding} {
			in.Findings[id] = []check.Finding{{ID: string(id) + "-1", Members: []string{"n2"}}}
		}
		if got := repeatsOn35(in); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
