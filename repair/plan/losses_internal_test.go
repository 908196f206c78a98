package plan

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/boot"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/shell"
)

// logTo is a log that ends with an entry, and knows that entries up to another one are committed.
func logTo(last, commit uint64) *evidence.WALFacts {
	return &evidence.WALFacts{FirstIndex: 1, LastIndex: last, HardState: &dumplog.HardState{Commit: commit}}
}

// TestOpenEnd: what was committed is not known where the logs of a majority are lost, or do not show their own ends.
func TestOpenEnd(t *testing.T) {
	cut := logTo(9, 9)
	cut.Damage = []evidence.DamageFacts{{OnStart: dumplog.StartRefused, LostFrom: 10, LostTo: 10}}
	noLog := func(_, b *evidence.Facts) { b.WAL = nil }
	for name, c := range map[string]struct {
		change func(a, b *evidence.Facts)
		member func(b *Member)
		dead   bool
		// voters are those that may know more; nil if a majority shows its ends.
		voters        []string
		committed, to uint64
	}{
		"two logs are there":   {},
		"one log is not there": {change: noLog, voters: []string{"b", "c"}, committed: 8, to: 9},
		"one is damaged": {change: func(_, b *evidence.Facts) { b.WAL = cut }, voters: []string{"b", "c"},
			committed: 9, to: 9},
		"its end is lost": {change: func(_, b *evidence.Facts) { b.WAL = logTo(9, 11) }, voters: []string{"b", "c"},
			committed: 11, to: 9},
		"one forgot": {member: func(b *Member) { b.Obstacle = ObstacleForgot }, voters: []string{"b", "c"},
			committed: 9, to: 9},
		"more is known": {change: func(a, _ *evidence.Facts) { a.Commit = 12 }, voters: []string{"a", "c"},
			committed: 12, to: 12},
		"it has another defect": {member: func(b *Member) { b.Obstacle = ObstacleRefused }},
		"it is a learner":       {change: noLog, member: func(b *Member) { b.Learner = true }},
		"it never started":      {change: noLog, dead: true},
		"it is no voter":        {change: noLog, member: func(b *Member) { b.ID = 7 }},
		"it is another's": {change: func(_, b *evidence.Facts) { b.ClusterID = 6 }, voters: []string{"b", "c"},
			committed: 8, to: 9},
	} {
		r := &compare.Report{Members: []evidence.Facts{
			{Name: "a", ClusterID: 5, MemberID: 1, Commit: 8, WAL: logTo(9, 8)},
			{Name: "b", ClusterID: 5, MemberID: 2, Commit: 9, WAL: logTo(9, 9)}}}
		if c.change != nil {
			c.change(&r.Members[0], &r.Members[1])
		}
		p := &Plan{Members: []Member{{Name: "a", ID: 1}, {Name: "b", ID: 2}, {Name: "c", ID: 3}}}
		p.Cluster.Quorum, p.Best.Name = 2, "a"
		if c.member != nil {
			c.member(&p.Members[1])
		}
		a := &r.Members[0]
		a.Membership.Voters = []dumplog.ID{1, 2, 3}
		ro := &roster{p: p, sources: &sources{r: r, kinds: map[string]evidence.Kind{"a": evidence.KindDataDir,
			"b": evidence.KindDataDir}}, best: a, ref: a, dead: map[dumplog.ID]bool{2: c.dead}}
		got := (&losses{ro}).openEnd()
		if c.voters == nil {
			if got != nil {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		if got == nil || !slices.Equal(got.Voters, c.voters) || got.CommittedTo != c.committed || got.LogTo != c.to ||
			got.Undecided == nil || got.Undecided.From != 9 {
			t.Errorf("%s: %+v, want %+v", name, got, c)
		}
	}
}

// TestUndecided: the entries of the kept member's log above all that it has applied or knows to be committed.
func TestUndecided(t *testing.T) {
	for name, c := range map[string]struct {
		wal     *evidence.WALFacts
		applied uint64
		want    *boot.Range
	}{
		"no log":                {nil, 5, nil},
		"some":                  {logTo(9, 7), 5, &boot.Range{From: 8, To: 9}},
		"one":                   {logTo(9, 8), 5, &boot.Range{From: 9, To: 9}},
		"all are committed":     {logTo(9, 9), 5, nil},
		"its end is lost":       {logTo(9, 12), 5, nil},
		"more are applied":      {logTo(9, 4), 6, &boot.Range{From: 7, To: 9}},
		"all are applied":       {logTo(9, 4), 9, nil},
		"no commit index":       {&evidence.WALFacts{LastIndex: 9}, 8, &boot.Range{From: 9, To: 9}},
		"neither is ever known": {&evidence.WALFacts{LastIndex: 2}, 0, &boot.Range{From: 1, To: 2}},
	} {
		lo := &losses{&roster{best: &evidence.Facts{WAL: c.wal, AppliedIndex: c.applied}}}
		if got := lo.undecided(); (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestOpenEndCautions: what is said about an end that is not known. A forced start, and no other way, raises revisions
// where every committed entry is at hand; a repair of files says only what the logs of the mended may have lost.
func TestOpenEndCautions(t *testing.T) {
	unknown, raise := "can have committed more than any source shows", "--bump-revision"
	for name, c := range map[string]struct {
		mode Mode
		open *OpenEnd
		gone []string
		want []string
	}{
		"all is at hand, a forced start": {mode: ForceNewCluster, want: []string{raise}},
		"all is at hand, clones":         {mode: Clone},
		"not known, clones":              {mode: Clone, open: &OpenEnd{}, want: []string{unknown, raise}},
		"not known, a restore": {mode: Restore, open: &OpenEnd{}, want: []string{unknown,
			": restore with " + raise}},
		"entries may be acknowledged": {mode: ForceNewCluster, open: &OpenEnd{Undecided: &boot.Range{From: 8, To: 9}},
			want: []string{unknown, "entries 8 to 9 of a may have been acknowledged", ": when the cluster runs"}},
		"files are mended": {mode: MendFiles, open: &OpenEnd{}, want: []string{"b may have acknowledged entries above 7"}},
		"files are mended, one is lost": {mode: MendFiles, open: &OpenEnd{}, gone: []string{"c"},
			want: []string{unknown, raise}},
	} {
		damaged := logTo(9, 9)
		damaged.Damage = []evidence.DamageFacts{{OnStart: dumplog.StartRefused, LostFrom: 9, LostTo: 10}}
		r := &compare.Report{Members: []evidence.Facts{{Name: "b", MemberID: 2, WAL: damaged}}}
		p := &Plan{Mode: c.mode, Best: Choice{Name: "a"}, Members: []Member{{Name: "b", ID: 2, Source: "b", Action: Keep}},
			Mends: []Mend{{Member: "b", Repairs: []string{MendLog}, Works: true}}}
		if p.Lost.Open = c.open; c.open != nil {
			c.open.LogTo = 7
		}
		lo := &losses{&roster{p: p, o: Options{Gone: c.gone}, best: &evidence.Facts{}, sources: &sources{r: r,
			kinds: map[string]evidence.Kind{"b": evidence.KindDataDir}}}}
		got := lo.openEndCautions()
		if len(got) != len(c.want) {
			t.Errorf("%s: %q", name, got)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s: %q, want %q", name, got[i], want)
			}
		}
	}
}

// TestMendLoses: a voter whose log is mended, and did not end where the member stopped, may have acknowledged more,
// unless the logs of a majority are whole.
func TestMendLoses(t *testing.T) {
	damaged := logTo(9, 9)
	damaged.Damage = []evidence.DamageFacts{{OnStart: dumplog.StartRefused, LostFrom: 9, LostTo: 10}}
	r := &compare.Report{}
	p := &Plan{}
	ro := &roster{p: p, best: &evidence.Facts{}, sources: &sources{r: r, kinds: map[string]evidence.Kind{}}}
	for i, name := range []string{"whole", "bad", "learner", "another's", "worse"} {
		id := dumplog.ID(i + 1)
		f := evidence.Facts{Name: name, MemberID: id, WAL: damaged}
		switch name {
		case "whole":
			f.WAL = logTo(9, 9)
		case "another's":
			f.MemberID = 9
		}
		r.Members, ro.kinds[name] = append(r.Members, f), evidence.KindDataDir
		p.Members = append(p.Members, Member{Name: name, ID: id, Source: name, Action: Replace,
			Learner: name == "learner"})
		p.Mends = append(p.Mends, Mend{Member: name, Repairs: []string{MendLog}, Works: true})
	}
	if got := ro.mendLoses(); got != "without giving anything up" {
		t.Errorf("with a majority: %s", got)
	}
	p.Lost.Open = &OpenEnd{}
	if got := ro.mendLoses(); !strings.Contains(got, "(whether bad, worse had acknowledged more is not known)") {
		t.Errorf("without a majority: %s", got)
	}
}

// TestBump: revisions are raised by more than a week of writes, and by no less than there are.
func TestBump(t *testing.T) {
	for rev, want := range map[int64]int64{0: leastBump, leastBump: leastBump, leastBump + 1: 2 * leastBump,
		5 * leastBump: 8 * leastBump} {
		if got := bump(rev); got != want {
			t.Errorf("%d: %d, want %d", rev, got, want)
		}
	}
	if got := bump(math.MaxInt64); got < 1<<61 {
		t.Errorf("of the highest revision: %d", got)
	}
	p := &Plan{Members: []Member{{Revision: 3 * leastBump}, {Revision: 5 * leastBump}}}
	if p.Best.Revision = leastBump; p.bumpRevision() != 8*leastBump {
		t.Errorf("the highest of the members does not count: %d", p.bumpRevision())
	}
	if p.Best.Revision = 9 * leastBump; p.bumpRevision() != 16*leastBump {
		t.Errorf("the kept member does not count: %d", p.bumpRevision())
	}
}

// TestLostAbove: entries above a rebuilt database are lost if a log that it was made from shows that they were
// committed.
func TestLostAbove(t *testing.T) {
	snap := func(index uint64, damage *evidence.DamageFacts) []evidence.SnapFacts {
		return []evidence.SnapFacts{{Index: index, Damage: damage}, {Index: 2}}
	}
	for name, c := range map[string]struct {
		f    evidence.Facts
		want int
	}{
		"it has all":                 {evidence.Facts{Name: "a", Commit: 9}, 0},
		"it has more":                {evidence.Facts{Name: "a", Commit: 4}, 0},
		"the log is committed above": {evidence.Facts{Name: "a", Commit: 12}, 3},
		"its end is lost":            {evidence.Facts{Name: "a", Commit: 9, WAL: logTo(9, 11)}, 2},
		"a snapshot is above":        {evidence.Facts{Name: "b", Snapshots: snap(10, nil)}, 1},
		"a damaged one is above":     {evidence.Facts{Name: "b", Snapshots: snap(10, &evidence.DamageFacts{})}, 0},
		"another source is above":    {evidence.Facts{Name: "c", Commit: 12, Snapshots: snap(10, nil)}, 0},
	} {
		x := &Rebuilt{Index: 9, Logs: []string{"a", "b"}}
		x.Lost = lostAbove(&compare.Report{Members: []evidence.Facts{c.f}}, x.Index, x.Logs)
		if got := x.lost(); got != c.want || x.Lost != nil && x.Lost.From != 10 {
			t.Errorf("%s: %d, %+v, want %d", name, got, x.Lost, c.want)
		}
	}
}

// TestWrongRecords: the command that mends wrong records is offered unless it was tried and failed.
func TestWrongRecords(t *testing.T) {
	cmd := shell.Format("etcd-medic repair db {}", shell.Operand("a"))
	for name, c := range map[string]struct {
		count int
		cmd   shell.Command
		tried *recordsTrial
		offer bool
		says  string
		entry uint64 // in the log
	}{
		"none": {},
		"no command": {count: 1,
			says: "1 record of a is proven wrong: no database is known to hold the right content"},
		"the log has it": {count: 2, entry: 13, says: "hold the right content; the log has it (first: entry 13)"},
		"not tried":      {count: 2, cmd: cmd, offer: true, says: "2 records of a are proven wrong: before anything"},
		"it works": {count: 1, cmd: cmd, tried: &recordsTrial{true, "good"}, offer: true,
			says: "(on a copy: good)"},
		"it does not":       {count: 1, cmd: cmd, tried: &recordsTrial{false, "bad"}, says: "cannot be brought back: bad"},
		"nothing was tried": {count: 1, tried: &recordsTrial{true, "good"}, says: "no database is known"},
	} {
		p := &Plan{Best: Choice{Name: "a"}}
		p.Lost.Records.Count = c.count
		if c.entry > 0 {
			p.Lost.Records.Rows = []compare.LostRecord{{}, {Index: c.entry}}
		}
		lo := &losses{&roster{p: p, o: Options{records: c.tried}, sources: &sources{r: &compare.Report{}}}}
		lo.mendRecords(c.cmd)
		says := lo.recordsCaution()
		if (p.Lost.Mend != "") != c.offer || p.Lost.Mend != p.Lost.MendArgs.String() ||
			!strings.Contains(says, c.says) ||
			(says == "") != (c.count == 0) {
			t.Errorf("%s: %q, %s", name, p.Lost.Mend, says)
		}
	}
}
