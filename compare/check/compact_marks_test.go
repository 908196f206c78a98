package check_test

import (
	"crypto/sha256"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

func compactMark(rev uint64) []byte {
	return binary.BigEndian.AppendUint64(append(binary.BigEndian.AppendUint64(nil, rev), '_'), 0)
}

func compaction(rev int64) *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{Compaction: &pb.CompactionRequest{Revision: rev}}
}

// compactedCluster is a cluster that compacted at revision 3; its newest revision is 6.
func compactedCluster(version string, more ...*pb.InternalRaftRequest) *clustertest.Script {
	s := clustertest.NewScript(version)
	for i := range s.Members {
		s.Start(i)
	}
	for range 3 {
		s.Add(step(0, "", putKey("/a", 0)))
	}
	s.Add(step(0, "", compaction(3)))
	s.Add(step(0, "", putKey("/a", 0)))
	s.Add(step(0, "", putKey("/b", 0)))
	for _, r := range more {
		s.Add(step(0, "", r))
	}
	return s
}

// TestCompactMarks: marks that no compaction can have left are errors on the member that holds them; an unfinished
// compaction that the log requests, and what the log cannot show, are not.
func TestCompactMarks(t *testing.T) {
	for name, c := range map[string]struct {
		version  string
		more     []*pb.InternalRaftRequest
		change   change
		violated bool
		// behind is true where node2 has not executed what more requests.
		behind bool
	}{
		"sound": {version: "3.6.0"},
		"finished above scheduled": {version: "3.6.0",
			change: put("meta", "finishedCompactRev", compactMark(4)), violated: true},
		"finished above scheduled on 3.3": {version: "3.3.0",
			change: put("meta", "finishedCompactRev", compactMark(4)), violated: true},
		"finished and nothing scheduled": {version: "3.6.0", change: remove("meta", "scheduledCompactRev"),
			violated: true},
		"nothing finished": {version: "3.6.0", change: remove("meta", "finishedCompactRev")},
		"scheduled and not requested": {version: "3.6.0",
			change: put("meta", "scheduledCompactRev", compactMark(5)), violated: true},
		"scheduled above the newest revision": {version: "3.5.0",
			change: put("meta", "scheduledCompactRev", compactMark(50)), violated: true},
		"scheduled and requested later than the member has applied": {version: "3.6.0", behind: true,
			more:   []*pb.InternalRaftRequest{putKey("/c", 0), compaction(5)},
			change: put("meta", "scheduledCompactRev", compactMark(5)), violated: true},
		"scheduled and requested": {version: "3.6.0", more: []*pb.InternalRaftRequest{compaction(5)},
			change: put("meta", "finishedCompactRev", compactMark(3))},
		"scheduled on 3.4, which moves no index": {version: "3.4.0",
			change: put("meta", "scheduledCompactRev", compactMark(5))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := compactedCluster(c.version)
			for n, r := range c.more {
				if at := script.Add(step(0, "", r)) - 1; c.behind && n == 0 {
					script.Of[1] = clustertest.ScriptMember{LogUntil: at, AppliedUntil: at}
				}
			}
			dirs := script.Write(t, t.TempDir())
			if c.change != nil {
				casetest.EditDB(t, dirs[1], c.change)
			}
			for _, sources := range [][]string{dirs, dirs[1:2]} {
				r := run(t, inputOf(t, sources...), "K13")
				if got := accused(r); (r.Outcome == check.Violated) != c.violated || c.violated &&
					!slices.Equal(got, []string{"node2"}) {
					t.Errorf("%d sources: %s %v, want violated %v: %+v", len(sources), r.Outcome, got, c.violated,
						r.Findings)
				}
			}
		})
	}
}

// TestCompactMarksOfPurgedLog: where the log does not reach back to the founding, it must show the compaction before
// the scheduled one.
func TestCompactMarksOfPurgedLog(t *testing.T) {
	for _, c := range []struct {
		mark, behind uint64
		violated     bool
	}{{5, 0, false}, {50, 0, true}, {50, 1, true}, {50, 2, false}} { // two puts come after the compaction
		dirs := compactedCluster("3.6.0").Write(t, t.TempDir())
		casetest.EditDB(t, dirs[0], put("meta", "scheduledCompactRev", compactMark(c.mark)))
		casetest.EditDB(t, dirs[0], put("auth", "authRevision", binary.BigEndian.AppendUint64(nil, 2))) // may refuse puts
		in := inputOf(t, dirs[0])
		in.Replay.First = 2
		in.Members[0].AppliedMin -= c.behind
		if r := run(t, in, "K13"); (r.Outcome == check.Violated) != c.violated {
			t.Errorf("mark %d, %d behind: %s %+v", c.mark, c.behind, r.Outcome, r.Findings)
		}
		// Another log that reaches back to the founding, with a gap between the two, shows no more and no less.
		in.Replay.First, in.Replay.Gaps = 1, []replay.Gap{{From: 2, To: 2}}
		if r := run(t, in, "K13"); (r.Outcome == check.Violated) != c.violated {
			t.Errorf("mark %d, %d behind, beyond a gap: %s %+v", c.mark, c.behind, r.Outcome, r.Findings)
		}
	}
}

// TestCompactMarkAboveTheCluster: with no compaction left in the logs, another member shows the revision that the
// cluster had.
func TestCompactMarkAboveTheCluster(t *testing.T) {
	for _, version := range []string{"3.4.0", "3.6.0"} {
		dirs := compactedCluster(version).Write(t, t.TempDir())
		casetest.EditDB(t, dirs[0], put("meta", "scheduledCompactRev", compactMark(50)))
		casetest.EditDB(t, dirs[0], put("auth", "authRevision", binary.BigEndian.AppendUint64(nil, 2))) // may refuse puts
		for _, c := range []struct {
			behind uint64
			want   check.Outcome
		}{{0, check.Violated}, {1, check.Holds}} {
			in := inputOf(t, dirs[:2]...)
			in.Replay.First = in.Members[0].AppliedMin + 1
			in.Members[1].AppliedMin -= c.behind
			if r := run(t, in, "K13"); r.Outcome != c.want || c.want == check.Violated &&
				!slices.Equal(accused(r), []string{"node1"}) {
				t.Errorf("%s, %d behind: %s %v", version, c.behind, r.Outcome, accused(r))
			}
		}
	}
}

// TestCompactMarkSinceTheCluster: the log shows that nothing after another member's last entry requests a compaction
// above the revision that it had.
func TestCompactMarkSinceTheCluster(t *testing.T) {
	for name, c := range map[string]struct {
		more   []*pb.InternalRaftRequest
		change func(in *check.Input)
		want   check.Outcome
	}{
		"not requested": {nil, func(*check.Input) {}, check.Violated},
		"requested":     {[]*pb.InternalRaftRequest{compaction(50), compaction(2)}, func(*check.Input) {}, check.Holds},
		"requested in the log of another cluster": {[]*pb.InternalRaftRequest{compaction(50), compaction(2)},
			func(in *check.Input) {
				in.Members[0].ClusterID++
				in.Members[1].ClusterID++
				in.Members[0].WAL.Log, in.Members[1].WAL.Log = compactedLog(t), compactedLog(t)
			}, check.Violated},
		"entries are missing": {nil, func(in *check.Input) { in.Replay.First = in.Members[0].AppliedMin + 1 }, check.Holds},
		"the logs differ": {nil, func(in *check.Input) {
			in.Replay.LogDiffs = []replay.LogDiff{{Index: 3}}
		}, check.Holds},
		"no replay": {nil, func(in *check.Input) { in.Replay = nil }, check.Holds},
	} {
		dirs := compactedCluster("3.4.0", c.more...).Write(t, t.TempDir())
		casetest.EditDB(t, dirs[0], put("meta", "scheduledCompactRev", compactMark(50)))
		in := inputOf(t, dirs...)
		in.Members[1].AppliedMin--
		in.Members[2].DB = nil
		c.change(in)
		r := run(t, in, "K13")
		if r.Outcome != c.want || c.want == check.Violated && (!slices.Equal(accused(r), []string{"node1"}) ||
			!strings.Contains(r.Findings[0].Title, "node2 is at revision 6, and no entry since then requests it")) {
			t.Errorf("%s: %s %+v", name, r.Outcome, r.Findings)
		}
	}
}

// compactedLog is the log of a cluster that requests no other compaction than the one at revision 3.
func compactedLog(t *testing.T) *dumplog.Log {
	t.Helper()
	l, err := dumplog.Open(filepath.Join(compactedCluster("3.4.0").Write(t, t.TempDir())[0], "member", "wal"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// TestCompactMarksOfBackup: B07 judges the marks of a backup.
func TestCompactMarksOfBackup(t *testing.T) {
	dirs := compactedCluster("3.6.0").Write(t, t.TempDir())
	casetest.EditDB(t, dirs[0], put("meta", "finishedCompactRev", compactMark(4)))
	file := backupOf(t, dirs[0])
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	if err := os.WriteFile(file, append(b, sum[:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	in := inputOf(t, file)
	if r := run(t, in, "K13"); r.Outcome != check.NotChecked {
		t.Errorf("K13: %s %+v", r.Outcome, r.Findings)
	}
	if r := run(t, in, "B07"); r.Outcome != check.Violated {
		t.Errorf("B07: %s", r.Outcome)
	}
}

// TestCompactMarkAfterAPut: a put that nothing refuses shows that the revision was below the scheduled one, even if the
// log does not reach back to the compaction before.
func TestCompactMarkAfterAPut(t *testing.T) {
	gone := &pb.InternalRaftRequest{DeleteRange: &pb.DeleteRangeRequest{Key: []byte("/b")}}
	leased, keeps := putKey("/a", 7), putKey("/a", 0)
	keeps.Put.IgnoreValue = true
	alarm := &pb.InternalRaftRequest{Alarm: &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: 1,
		Alarm: pb.AlarmType_NOSPACE}}
	off := &pb.InternalRaftRequest{Alarm: &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, MemberID: 1,
		Alarm: pb.AlarmType_NOSPACE}}
	for name, c := range map[string]struct {
		more     []*pb.InternalRaftRequest
		change   change
		violated bool
	}{
		"a put":                     {more: []*pb.InternalRaftRequest{putKey("/c", 0)}, violated: true},
		"a delete":                  {more: []*pb.InternalRaftRequest{gone, gone}},
		"with a lease":              {more: []*pb.InternalRaftRequest{leased, leased}},
		"that keeps the value":      {more: []*pb.InternalRaftRequest{keeps, keeps}},
		"after an alarm":            {more: []*pb.InternalRaftRequest{alarm, off, putKey("/c", 0)}},
		"before an alarm":           {more: []*pb.InternalRaftRequest{putKey("/c", 0), alarm, off}, violated: true},
		"a put, and the compaction": {more: []*pb.InternalRaftRequest{putKey("/c", 0), compaction(50)}},
		"a put, and a request of auth": {more: []*pb.InternalRaftRequest{putKey("/c", 0)},
			change: put("auth", "authRevision", []byte{0, 0, 0, 0, 0, 0, 0, 2})},
	} {
		s := compactedCluster("3.6.0")
		first := uint64(0) // of the entries at hand: right after the first of more
		for i, r := range c.more {
			if at := s.Index(s.Add(step(0, "", r))); i == 0 {
				first = at + 1
			}
		}
		dirs := s.Write(t, t.TempDir())
		casetest.EditDB(t, dirs[0], put("meta", "scheduledCompactRev", compactMark(50)))
		if c.change != nil {
			casetest.EditDB(t, dirs[0], c.change)
		}
		in := inputOf(t, dirs[0])
		in.Replay.First = first
		if r := run(t, in, "K13"); (r.Outcome == check.Violated) != c.violated {
			t.Errorf("%s: %s %+v", name, r.Outcome, r.Findings)
		}
	}
}
