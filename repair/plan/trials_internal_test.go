package plan

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/boot"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// failing is a place where no copy can be made.
type failing struct {
	at      func() error
	closed  int
	scratch int
}

func (x *failing) open() (Trials, error) {
	x.scratch++
	return x, nil
}

// Room is enough.
func (*failing) Room(int64) error { return nil }

// Close counts.
func (x *failing) Close() { x.closed++ }

// Mend fails.
func (x *failing) Mend(context.Context, MendJob, func(string)) ([]string, error) { return nil, x.at() }

// Rebuild fails.
func (x *failing) Rebuild(context.Context, RebuildJob, func(*RebuiltFile) error) error { return x.at() }

// threeDirs are the data dirs of a cluster.
func threeDirs(t *testing.T) (specs []evidence.Spec) {
	t.Helper()
	for _, dir := range (clustertest.Synth{Members: 3, Entries: 20, Keys: 5, Value: 20}).Write(t, t.TempDir()) {
		specs = append(specs, evidence.Spec{Name: filepath.Base(dir), Where: dir})
	}
	return specs
}

func blanked(t *testing.T, specs ...evidence.Spec) {
	t.Helper()
	for _, s := range specs {
		if err := os.WriteFile(filepath.Join(s.Where, "member", "snap", "db"), make([]byte, 64<<10), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// attempts are the things that are tried on copies, each with sources where it is.
var attempts = map[string]struct {
	spoil func(t *testing.T, specs []evidence.Spec)
	try   func(ctx context.Context, r *compare.Report, specs []evidence.Spec, s Scratch) (made bool, err error)
}{
	"mends": {func(t *testing.T, specs []evidence.Spec) { blanked(t, specs[0]) },
		func(ctx context.Context, r *compare.Report, specs []evidence.Spec, s Scratch) (bool, error) {
			x, err := tryMends(ctx, r, specs, s, &Options{})
			return x != nil, err
		}},
	"records": {func(t *testing.T, specs []evidence.Spec) {
		for i, revs := range [][]int64{{4}, {17, 18}, {19, 20}} {
			casetest.EditDB(t, specs[i].Where, casetest.AlterRecords(revs...))
		}
	}, func(ctx context.Context, r *compare.Report, specs []evidence.Spec, s Scratch) (bool, error) {
		x, err := tryRecords(ctx, r, specs, s, &Options{})
		return x != nil, err
	}},
	"rebuild": {func(t *testing.T, specs []evidence.Spec) { blanked(t, specs...) },
		func(ctx context.Context, r *compare.Report, specs []evidence.Spec, s Scratch) (bool, error) {
			x, err := tryRebuild(ctx, r, specs, s, &Options{})
			return x != nil, err
		}},
}

// TestTrialsFail: where there is no place for copies or the caller gives up, that is the result, and not that a
// repair fails.
func TestTrialsFail(t *testing.T) {
	for name, c := range attempts {
		specs := threeDirs(t)
		c.spoil(t, specs)
		r, err := compare.Diagnose(t.Context(), specs, compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		x := &failing{at: func() error { return errors.New("nothing works") }}
		if _, err := c.try(t.Context(), r, specs, x.open); err != nil || x.closed != 1 {
			t.Errorf("%s, nothing works: %v, closed %d times", name, err, x.closed)
		}
		full := errors.New("full")
		none := func() (Trials, error) { return nil, full }
		if made, err := c.try(t.Context(), r, specs, none); made || err != full {
			t.Errorf("%s, no place: %t, %v", name, made, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		x = &failing{at: func() error {
			cancel()
			return ctx.Err()
		}}
		if made, err := c.try(ctx, r, specs, x.open); made && name != "mends" || !errors.Is(err, context.Canceled) ||
			x.closed != 1 {
			t.Errorf("%s, given up: %t, %v, closed %d times", name, made, err, x.closed)
		}
		x = &failing{}
		if made, err := c.try(ctx, r, specs, x.open); made || !errors.Is(err, context.Canceled) ||
			x.closed != x.scratch {
			t.Errorf("%s, given up before: %t, %v, closed %d times", name, made, err, x.closed)
		}
	}
}

// TestTryFails: what fails in a try fails the plan, and nothing else is tried.
func TestTryFails(t *testing.T) {
	for name, c := range attempts {
		specs := threeDirs(t)
		c.spoil(t, specs)
		calls, full := 0, errors.New("full")
		fails := 1
		if name == "rebuild" { // its members are mended before
			fails = 2
		}
		p, err := New(t.Context(), specs, func() (Trials, error) {
			if calls++; calls == fails {
				return nil, full
			}
			return &failing{at: func() error { return errors.New("nothing works") }}, nil
		}, Options{})
		if p != nil || err != full || calls != fails {
			t.Errorf("%s: %+v, %v after %d calls", name, p, err, calls)
		}
	}
}

// TestNoBase: a file that is no database makes no promise, and only a source has a place as a base.
func TestNoBase(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.db")
	if x, err := Inspected(t.Context(), &RebuildJob{}, &RebuiltFile{Path: none}, compare.Options{}); x != nil ||
		!errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%+v, %v", x, err)
	}
	if got := BaseNamed(&evidence.Set{}, "n1"); got.Where != "" {
		t.Errorf("%+v", got)
	}
}

// TestSpecsOfParts: a data dir is named by the folder of its parts, also where its log is elsewhere or missing.
func TestSpecsOfParts(t *testing.T) {
	specs, elsewhere := threeDirs(t), filepath.Join(t.TempDir(), "wal")
	wal := func(i int) string { return filepath.Join(specs[i].Where, "member", "wal") }
	if err := errors.Join(os.Rename(wal(1), elsewhere), os.RemoveAll(wal(2))); err != nil {
		t.Fatal(err)
	}
	specs[1].WALDir = elsewhere
	set, err := evidence.Open(t.Context(), specs, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = set.Close() }() // only read
	got := SpecsOf(set)
	for i, s := range specs {
		x := got[s.Name]
		if x.Where != filepath.Join(s.Where, "member") || i == 1 && x.WALDir != elsewhere || i != 1 && x.WALDir != "" {
			t.Errorf("%s: %+v", s.Name, x)
		}
	}
}

// TestHeldAnyway: a backup that holds as much as a rebuilt database makes it needless, but not one that the report set
// apart: its index counts another log.
func TestHeldAnyway(t *testing.T) {
	dirs := threeDirs(t)
	set, err := evidence.Open(t.Context(), []evidence.Spec{{Name: "backup",
		Where: filepath.Join(dirs[0].Where, "member", "snap", "db")}}, evidence.Options{NoHashes: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = set.Close() }()
	at := set.Members[0].ConsistentIndex()
	compared := &compare.Report{Members: []evidence.Facts{{Name: "backup"}}}
	if !heldAnyway(compared, set, "", at) || heldAnyway(compared, set, "", at+1) {
		t.Error("what a backup holds is not known")
	}
	if heldAnyway(&compare.Report{Members: []evidence.Facts{{Name: "node1"}}}, set, "", at) {
		t.Error("a backup counts that was set apart")
	}
}

// TestUndecidedOfRebuilt: entries of the logs above a rebuilt database may have been acknowledged.
func TestUndecidedOfRebuilt(t *testing.T) {
	for name, c := range map[string]struct {
		last  uint64
		lost  *boot.Range
		says  string
		saved int
	}{
		"the database holds all": {last: 9},
		"one is above":           {last: 10, says: "entry 10 in the logs may have been acknowledged", saved: 1},
		"above those lost":       {last: 12, lost: &boot.Range{From: 10, To: 11}, says: "entry 12 in the logs"},
		"no more than those":     {last: 11, lost: &boot.Range{From: 10, To: 11}},
	} {
		lo := &losses{&roster{p: &Plan{}, sources: &sources{r: &compare.Report{Sources: []compare.Source{{Name: "a"}},
			Members: []evidence.Facts{{Name: "a", WAL: &evidence.WALFacts{FirstIndex: 1, LastIndex: c.last}}}}}}}
		lo.undecidedOfRebuilt(&Rebuilt{Index: 9, Logs: []string{"a"}, Lost: c.lost})
		got := strings.Join(lo.p.Lost.Unproven, "; ")
		if !strings.HasPrefix(got, c.says) || (got == "") != (c.says == "") || len(lo.p.Lost.Save) != c.saved {
			t.Errorf("%s: %q, saved by %q", name, got, lo.p.Lost.Save)
		}
	}
}
