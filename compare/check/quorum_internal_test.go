package check

import (
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestVotersAt: the configuration at an index is known as far as the log holds every later change. Where a received
// snapshot stands for some, a change among them is not seen.
func TestVotersAt(t *testing.T) {
	m := &evidence.Member{Commit: 60}
	m.Membership = evidence.Membership{RaftKnown: true, Voters: []dumplog.ID{1, 2, 3}}
	m.WAL.Conf = []evidence.ConfEntry{
		{Index: 40, Change: dumplog.ConfChange{Type: dumplog.ConfChangeAddNode, NodeID: 3}},
		{Index: 50, Change: dumplog.ConfChange{Type: dumplog.ConfChangeRemoveNode, NodeID: 4}}}
	for name, c := range map[string]struct {
		log   dumplog.Summary
		index uint64
		want  []dumplog.ID
		known bool
	}{
		"after the changes":            {dumplog.Summary{FirstIndex: 5, LastIndex: 60}, 51, []dumplog.ID{1, 2, 3}, true},
		"between them":                 {dumplog.Summary{FirstIndex: 5, LastIndex: 60}, 45, []dumplog.ID{1, 2, 3, 4}, true},
		"before them":                  {dumplog.Summary{FirstIndex: 5, LastIndex: 60}, 30, []dumplog.ID{1, 2, 4}, true},
		"before the log":               {dumplog.Summary{FirstIndex: 35, LastIndex: 60}, 30, nil, false},
		"a received snapshot after it": {jumped(20, 35), 15, nil, false},
		"the snapshot stands for it":   {jumped(20, 35), 30, nil, false},
		"after the snapshot":           {jumped(20, 35), 36, []dumplog.ID{1, 2, 4}, true},
	} {
		m.WAL.Summary = c.log
		got, known, _ := votersAt(m, c.index)
		if slices.Sort(got); known != c.known || known && !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, want %v, %v", name, got, known, c.want, c.known)
		}
	}
}

// TestVotersBeforeARemoval: a removed member was a voter if the last change before that added or promoted it, or the
// newest configuration before that names it so. Otherwise that is not known.
func TestVotersBeforeARemoval(t *testing.T) {
	change := func(index uint64, kind dumplog.ConfChangeType, id dumplog.ID) evidence.ConfEntry {
		return evidence.ConfEntry{Index: index, Change: dumplog.ConfChange{Type: kind, NodeID: id}}
	}
	voter, learner := dumplog.ConfChangeAddNode, dumplog.ConfChangeAddLearnerNode
	refused := change(20, voter, 4)
	refused.Refused = true
	file := func(index uint64, voters, learners []dumplog.ID) *dumplog.SnapFile {
		f := &dumplog.SnapFile{ConfState: dumplog.ConfState{Voters: voters, Learners: learners}}
		f.Index = index
		return f
	}
	two, four := []dumplog.ID{1, 2}, []dumplog.ID{4}
	for name, c := range map[string]struct {
		conf  []evidence.ConfEntry
		files []*dumplog.SnapFile
		want  []dumplog.ID
		exact bool
	}{
		"nothing shows it":        {nil, nil, []dumplog.ID{1, 2, 4}, false},
		"added as voter":          {[]evidence.ConfEntry{change(9, voter, 4)}, nil, []dumplog.ID{1, 2, 4}, true},
		"added as learner":        {[]evidence.ConfEntry{change(9, learner, 4)}, nil, two, true},
		"promoted":                {[]evidence.ConfEntry{change(9, learner, 4), change(15, voter, 4)}, nil, []dumplog.ID{1, 2, 4}, true},
		"its promotion refused":   {[]evidence.ConfEntry{change(9, learner, 4), refused}, nil, two, true},
		"another was promoted":    {[]evidence.ConfEntry{change(9, learner, 4), change(15, voter, 2)}, nil, two, true},
		"updated since":           {[]evidence.ConfEntry{change(9, learner, 4), change(15, dumplog.ConfChangeUpdateNode, 4)}, nil, two, true},
		"a snapshot with voter":   {nil, []*dumplog.SnapFile{file(20, []dumplog.ID{1, 2, 4}, nil)}, []dumplog.ID{1, 2, 4}, true},
		"a snapshot with learner": {nil, []*dumplog.SnapFile{file(20, two, four)}, two, true},
		"the newer snapshot": {nil, []*dumplog.SnapFile{file(20, []dumplog.ID{1, 2, 4}, nil), file(10, two, four)},
			[]dumplog.ID{1, 2, 4}, true},
		"a snapshot without it":   {nil, []*dumplog.SnapFile{file(20, two, nil)}, []dumplog.ID{1, 2, 4}, false},
		"a snapshot of the index": {nil, []*dumplog.SnapFile{file(50, two, four)}, []dumplog.ID{1, 2, 4}, false},
		"an empty configuration":  {nil, []*dumplog.SnapFile{file(20, nil, four)}, []dumplog.ID{1, 2, 4}, false},
	} {
		m := &evidence.Member{Commit: 60, Snap: dumplog.SnapDir{Files: c.files}}
		m.Membership = evidence.Membership{RaftKnown: true, Voters: two}
		m.WAL.Summary = dumplog.Summary{FirstIndex: 5, LastIndex: 60}
		m.WAL.Conf = append(slices.Clone(c.conf), change(50, dumplog.ConfChangeRemoveNode, 4))
		got, known, exact := votersAt(m, 30)
		if slices.Sort(got); !known || exact != c.exact || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, want %v, %v", name, got, exact, c.want, c.exact)
		}
	}
	m := &evidence.Member{Commit: 60}
	m.Membership = evidence.Membership{RaftKnown: true, Voters: two}
	m.WAL.Summary = dumplog.Summary{FirstIndex: 5, LastIndex: 60, Snapshots: []dumplog.SnapshotRecord{
		{Index: 20, ConfState: &dumplog.ConfState{Voters: two, Learners: four}}, {Index: 25}}}
	m.WAL.Conf = []evidence.ConfEntry{change(50, dumplog.ConfChangeRemoveNode, 4)}
	if got, _, exact := votersAt(m, 30); !exact || !slices.Equal(got, two) {
		t.Errorf("a snapshot record with learner: %v, %v", got, exact)
	}
}

func jumped(from, to uint64) dumplog.Summary {
	return dumplog.Summary{FirstIndex: 5, LastIndex: 60, Jumps: []dumplog.Jump{{From: from, To: to}}}
}

// TestVoterOfConfigurationAlone: a voter that only raft's configuration names, as a .snap file that was altered does,
// is not one to remove, nor one that a cause or a plan may rest on.
func TestVoterOfConfigurationAlone(t *testing.T) {
	add := evidence.ConfEntry{Index: 9, Change: dumplog.ConfChange{Type: dumplog.ConfChangeAddNode, NodeID: 4}}
	for name, c := range map[string]struct {
		change func(m *evidence.Member)
		remove bool
	}{
		"named alone":      {func(*evidence.Member) {}, false},
		"added by a log":   {func(m *evidence.Member) { m.WAL.Conf = []evidence.ConfEntry{add} }, true},
		"in the bucket":    {func(m *evidence.Member) { m.Membership.Bucket = []dumplog.ID{4} }, true},
		"in the v2 store":  {func(m *evidence.Member) { m.Membership.V2 = []dumplog.ID{4} }, true},
		"listed with URLs": {func(m *evidence.Member) { m.Membership.PeerURLs[4] = []string{"http://h:2380"} }, true},
	} {
		m := &evidence.Member{Source: &evidence.Source{}, MemberID: 1, Commit: 60}
		m.WAL.Log = &dumplog.Log{}
		m.Membership = evidence.Membership{RaftKnown: true, Voters: []dumplog.ID{1, 2, 3, 4},
			PeerURLs: map[dumplog.ID][]string{}, Started: map[dumplog.ID]bool{1: true, 2: true, 3: true}}
		c.change(m)
		r := runQuorumPossible(&Input{Members: Sources{m}})
		if len(r.Findings) != 1 {
			t.Fatalf("%s: %+v", name, r)
		}
		f := r.Findings[0]
		removes := f.Remedy[0].Command.Program()[2] == "remove"
		if removes != c.remove || len(f.Facts.About) > 0 != c.remove {
			t.Errorf("%s: %v, about %v", name, f.Remedy[0].Command, f.Facts.About)
		}
	}
}
