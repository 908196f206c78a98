package run

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestSameSources: every source of the plan is needed with the digest that the plan has. More sources do no harm, and
// one that cannot be read is named before anything else.
func TestSameSources(t *testing.T) {
	dirs := clustertest.Synth{Members: 2, Entries: 3, Keys: 2, Value: 8}.Write(t, t.TempDir())
	var specs []evidence.Spec
	for _, d := range dirs {
		specs = append(specs, evidence.Spec{Name: filepath.Base(d), Where: d})
	}
	set, err := evidence.Open(t.Context(), specs, evidence.Options{Hash: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = set.Close() }() // only read
	digest := set.Members[1].Source.Manifest.Digest()
	other := strings.Repeat("0", len(digest))
	for name, tc := range map[string]struct {
		wants  []plan.Source
		failed []evidence.FailedSource
		want   string
	}{
		"the same": {[]plan.Source{{Name: "node2", SHA256: digest}}, nil, ""},
		"another": {[]plan.Source{{Name: "node2", SHA256: other}}, nil, "source node2 changed since the plan was " +
			"made: its digest was 000000000000, it is " + digest[:12]},
		"not given": {[]plan.Source{{Name: "node2", SHA256: digest}, {Name: "node3", SHA256: digest}}, nil,
			"source node3 of the plan is missing"},
		"of another member": {[]plan.Source{{Name: "node1", SHA256: digest}}, nil, "source node1 changed"},
		"not readable": {[]plan.Source{{Name: "node3"}}, []evidence.FailedSource{{Spec: evidence.Spec{Where: "/gone"},
			Err: os.ErrNotExist}}, "source /gone cannot be read: file does not exist"},
	} {
		s := &session{plan: &plan.Plan{Sources: tc.wants}}
		err := s.sameSources(&evidence.Set{Members: set.Members, Failed: tc.failed})
		wantError(t, name, err, tc.want)
		if err != nil {
			wantRefusal(t, err)
		}
	}
}

// TestFreshWork: a scratch folder may be missing, empty, or of an earlier run. Another folder with files is refused,
// and what is no folder is an error.
func TestFreshWork(t *testing.T) {
	dir := t.TempDir()
	mine, others, file := filepath.Join(dir, "mine"), filepath.Join(dir, "others"), filepath.Join(dir, "file")
	empty := filepath.Join(dir, "empty")
	for _, d := range []string{mine, others, empty} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{filepath.Join(mine, markFile), filepath.Join(others, "data"), file} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &session{}
	for work, want := range map[string]string{filepath.Join(dir, "new"): "", empty: "", mine: "",
		others: others + " is not empty, and not of an earlier run", file: "not a directory"} {
		err := s.freshWork(work)
		wantError(t, work, err, want)
		if work == others {
			wantRefusal(t, err)
		}
	}
}

// TestSpecsOfASession: other places of the sources replace those of the plan, and no new path may be inside one of
// them.
func TestSpecsOfASession(t *testing.T) {
	planned, moved := t.TempDir(), t.TempDir()
	s := &session{plan: &plan.Plan{Inputs: []plan.Input{{Name: "node1", Where: planned}}}}
	check := func(source, other string) {
		t.Helper()
		if got := s.specs(); len(got) != 1 || got[0].Where != source {
			t.Errorf("sources %+v, want %s", got, source)
		}
		if err := s.outside(filepath.Join(other, "new"), ""); err != nil {
			t.Errorf("a path outside: %v", err)
		}
		wantRefusal(t, s.outside(filepath.Join(other, "new"), filepath.Join(source, "new")))
	}
	check(planned, moved)
	s.o.Specs = []evidence.Spec{{Name: "node1", Where: moved}}
	check(moved, planned)
}

// TestUnderWay: an earlier run of a mode is continued if it began a step, and neither ended nor was given up.
func TestUnderWay(t *testing.T) {
	for name, tc := range map[string]struct {
		states []State
		mode   plan.Mode
		again  bool
		want   bool
	}{
		"no step":         {[]State{StateRun}, plan.Live, false, false},
		"a step":          {[]State{StateRun, StateBegin}, plan.Live, false, true},
		"a step is done":  {[]State{StateRun, StateBegin, StateDone}, plan.Live, false, true},
		"again":           {[]State{StateRun, StateBegin}, plan.Live, true, false},
		"another mode":    {[]State{StateRun, StateBegin}, plan.Clone, false, false},
		"ended":           {[]State{StateRun, StateBegin, StateDone, StateEnd}, plan.Live, false, false},
		"given up":        {[]State{StateRun, StateBegin, StateAbandon}, plan.Live, false, false},
		"begun once more": {[]State{StateBegin, StateAbandon, StateRun, StateBegin}, plan.Live, false, true},
	} {
		s := &session{file: filepath.Join(t.TempDir(), "plan.yaml"), o: Options{Again: tc.again}}
		j, err := openJournal(s.file, "digest", plan.Live, false, func(Record, bool) {})
		if err != nil {
			t.Fatal(err)
		}
		for _, state := range tc.states {
			if err := j.write(Record{State: state, Step: "a"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.close(); err != nil {
			t.Fatal(err)
		}
		if got, err := s.underWay(tc.mode); err != nil || got != tc.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestRehearsedWay: what is tried is the way that was asked for, if it is possible and a program can go it on copies.
// The way that a reseed uses is tried as a reseed.
func TestRehearsedWay(t *testing.T) {
	for _, tc := range []struct {
		asked    plan.Mode
		ways     []plan.Way
		want     plan.Mode
		refusals string
	}{
		{plan.Clone, []plan.Way{{Mode: plan.Clone, Possible: true}}, plan.Clone, ""},
		{plan.Rebuild, []plan.Way{{Mode: plan.Rebuild, Possible: true}}, plan.Rebuild, ""},
		{plan.MendFiles, []plan.Way{{Mode: plan.MendFiles, Possible: true}}, plan.MendFiles, ""},
		{plan.Clone, []plan.Way{{Mode: plan.Clone}}, "", "the plan has no way clone that is possible"},
		{plan.Restore, []plan.Way{{Mode: plan.Restore, Possible: true}}, "",
			"the plan has no way restore that is possible"},
		{plan.Live, []plan.Way{{Mode: plan.Live, Possible: true}}, "", "the plan has no way live that is possible"},
		{plan.Live, []plan.Way{{Mode: plan.Reseed, Uses: plan.Live, Possible: true}}, plan.Reseed, ""},
		{plan.Reseed, []plan.Way{{Mode: plan.Reseed, Uses: plan.Live, Possible: true}}, plan.Reseed, ""},
		{plan.Live, []plan.Way{{Mode: plan.Reseed, Uses: plan.Live}}, "", "the plan has no way live that is possible"},
		{plan.Clone, []plan.Way{{Mode: plan.Reseed, Uses: plan.Live, Possible: true},
			{Mode: plan.Clone, Possible: true}}, plan.Clone, ""},
	} {
		s := &session{plan: &plan.Plan{Ways: tc.ways}, o: Options{Rehearse: tc.asked}}
		if got := s.rehearsed(); got != tc.want {
			t.Errorf("%s of %+v: %q, want %q", tc.asked, tc.ways, got, tc.want)
		}
		if tc.refusals != "" {
			wantError(t, string(tc.asked), s.nothingToTry(), tc.refusals)
		}
	}
}

// TestUpgradeOfCopies: a server that raises versions for good is refused, except for scratch copies and on request.
func TestUpgradeOfCopies(t *testing.T) {
	const raises = "it raises the storage version"
	for name, tc := range map[string]struct {
		throwAway, allow bool
		raises, want     string
	}{
		"published":              {false, false, raises, raises},
		"thrown away":            {true, false, raises, ""},
		"allowed":                {false, true, raises, ""},
		"it raises nothing else": {false, false, "", ""},
	} {
		s := sandboxRun{&session{o: Options{AllowUpgrade: tc.allow}, out: &Outcome{Raises: tc.raises}}}
		wantError(t, name, s.checkUpgrade(tc.throwAway), tc.want)
	}
}

// TestRoomForCopies: sources on which servers start, the database of the kept member, and a new data dir for each
// member that comes back or takes a place.
func TestRoomForCopies(t *testing.T) {
	p := fakePlan(t, 4, "node2")
	p.Member("node3").Startable, p.Member("node4").Action = false, plan.StandIn
	set := &evidence.Set{}
	for label, size := range map[string]int64{"node1": 1, "node2": 10, "node3": 100, "node4": 1000, "other": 10_000} {
		set.Members = append(set.Members, &evidence.Member{Source: &evidence.Source{Name: label,
			Manifest: &evidence.Manifest{Bytes: size}}})
	}
	s := sandboxRun{&session{plan: p}}
	if got, want := s.needs(set), plan.SandboxNeeds(1011, 0, 2); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
	var size int64
	for i, entries := range []int{3, 3000} {
		dir := clustertest.Synth{Members: 1, Entries: entries, Keys: entries, Value: 80}.Write(t, t.TempDir())[0]
		h, err := dumpdb.Open(filepath.Join(dir, "member", "snap", "db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		for _, m := range set.Members {
			if (m.Label() == p.Best.Name) == (i == 0) {
				m.DB = &evidence.DB{Handle: h}
			}
		}
		size = max(size, h.Size()*int64(1-i))
	}
	if got, want := s.needs(set), plan.SandboxNeeds(1011, size, 2); got != want || size == 0 {
		t.Errorf("%d bytes, want %d, with a database of %d", got, want, size)
	}
}

// TestFillersOfAServer: servers that keep 5,000 entries after a snapshot need more proposals than that.
func TestFillersOfAServer(t *testing.T) {
	for v, want := range map[node.Version]int{{Major: 3, Minor: 4, Patch: 30}: 5250,
		{Major: 3, Minor: 5, Patch: 13}: 5250,
		{Major: 3, Minor: 5, Patch: 14}: 250, {Major: 3, Minor: 6}: 250} {
		if got := sandboxFillers(v); got != want {
			t.Errorf("%+v: %d, want %d", v, got, want)
		}
	}
}

// TestJournalOfASession: the outcome says the mode, and whether an earlier process began the run.
func TestJournalOfASession(t *testing.T) {
	o := Options{}
	o.fill()
	file := filepath.Join(t.TempDir(), "plan.yaml")
	for _, resumed := range []bool{false, true} {
		s := &session{plan: &plan.Plan{Digest: "digest"}, file: file, o: o, out: &Outcome{}}
		if err := errors.Join(s.journal(plan.Clone), s.j.close()); err != nil {
			t.Fatal(err)
		}
		if s.out.Mode != plan.Clone || s.out.Resumed != resumed {
			t.Errorf("%+v, want resumed %v", s.out, resumed)
		}
	}
}
