//go:build e2e

package run

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// TestE2ERepairRestores: restores that went wrong in ways that no server notices.
func TestE2ERepairRestores(t *testing.T) {
	different := func(t *testing.T, s *spoiled) []string {
		early := s.save(0)
		s.put(0, 10)
		late := s.save(1)
		s.c.StopAll()
		s.restore(0, early, "token", 0, 1, 2)
		s.restore(1, late, "token", 0, 1, 2)
		s.restore(2, early, "token", 0, 1, 2)
		s.startAll()
		return s.c.Sources()
	}
	split := func(t *testing.T, s *spoiled) []string {
		one := s.save(0)
		s.c.StopAll()
		for i := range 3 {
			s.restore(i, one, "token", i)
		}
		s.startAll()
		s.c.Put(1, "/only/node2", "x")
		return s.c.Sources()
	}
	oneOther := func(t *testing.T, s *spoiled) []string {
		early := s.save(0)
		s.put(0, 10)
		s.lead(0)
		s.c.Stop(2)
		s.put(0, 10)
		s.restore(2, early, "other", 0, 1, 2)
		return s.c.Sources()
	}
	refounded := func(t *testing.T, s *spoiled) []string {
		s.put(0, 20)
		s.c.WaitEqual()
		s.c.StopAll()
		for i := range 2 {
			s.c.Wipe(i)
			s.c.StartProcess(i)
		}
		s.c.WaitServing(0)
		s.c.Put(0, "/only/after", "x")
		return s.c.Sources()
	}
	lines := []string{"3.5.35", "3.6.16"}
	runTroubles(t, []trouble{
		{name: "restored from different snapshots, not chosen", lines: lines, spoil: different,
			want: wanted{refused: "different backups"}},
		{name: "restored from different snapshots", lines: lines, spoil: different, choice: plan.Options{Best: "node2"},
			want: wanted{class: "data-divergence", cause: "restore-from-different-snapshots", mode: plan.Live,
				acts: map[string]plan.Action{"node1": plan.Replace, "node2": plan.Best, "node3": plan.Replace}}},
		{name: "split into clusters of one, not chosen", lines: lines, spoil: split,
			want: wanted{refused: "different clusters"}},
		{name: "split into clusters of one", lines: lines, spoil: split, choice: plan.Options{Best: "node2"},
			want: wanted{class: "foreign-cluster", cause: "restore-split-into-single-clusters",
				acts: map[string]plan.Action{"node1": plan.Join, "node2": plan.Best, "node3": plan.Join}}},
		{name: "a majority wiped and started as new, not chosen", lines: lines, spoil: refounded,
			want: wanted{refused: "content cannot decide"}},
		{name: "a majority wiped and started as new", lines: lines, spoil: refounded,
			choice: plan.Options{Best: "node3"},
			want: wanted{class: "foreign-cluster", cause: "same-token-twin-clusters",
				acts: map[string]plan.Action{"node1": plan.Replace, "node2": plan.Replace, "node3": plan.Best}}},
		{name: "one member restored as another cluster", lines: lines, spoil: oneOther,
			choice: plan.Options{Best: "node1"},
			want: wanted{class: "foreign-cluster", cause: "restored-one-member-only",
				acts: map[string]plan.Action{"node1": plan.Best, "node2": plan.Keep, "node3": plan.Replace}}},
	})
}

// TestE2ERepairCopiedDirs: data dirs that were copied and put to use twice, or after their member was removed.
func TestE2ERepairCopiedDirs(t *testing.T) {
	runTroubles(t, []trouble{
		{
			name: "cloned data dir running twice", lines: []string{"3.5.35", "3.6.16"},
			spoil: func(_ *testing.T, s *spoiled) []string {
				s.c.WaitApplied()
				s.lead(0)
				s.c.Stop(2)
				twin := s.c.Twin(2)
				s.put(0, 5)
				s.c.WaitApplied()
				s.c.Stop(twin)
				s.lead(1)
				s.c.StartProcess(2)
				s.put(0, 10)
				s.c.WaitServing(2)
				s.c.WaitApplied()
				return s.c.Sources()
			},
			want: wanted{class: "member-lost-data", cause: "data-dir-cloned-running-twice"},
		},
		{
			name: "removed member's dir beside its successor's", lines: []string{"3.5.35", "3.6.16"},
			spoil: func(t *testing.T, s *spoiled) []string {
				old := s.replaceNode3()
				return append(s.c.Sources()[:2], "node3="+evidencetest.Copy(t, s.c.DataDir(2)), "old="+old)
			},
			want: wanted{class: "healthy", acts: map[string]plan.Action{"node1": plan.Best, "node2": plan.Keep,
				"node3": plan.Keep,
				"old":   plan.Retire}},
		},
		{
			name: "removed member's dir put back in place of its successor's", lines: []string{"3.5.35", "3.6.16"},
			spoil: func(_ *testing.T, s *spoiled) []string {
				old := s.replaceNode3()
				return append(s.c.Sources()[:2], "node3="+old)
			},
			want: wanted{class: "membership", cause: "removed-member-data-dir",
				acts: map[string]plan.Action{"node1": plan.Best, "node2": plan.Keep, "node3": plan.Replace}},
		},
	})
}

// replaceNode3 removes node3, sets its data dir aside and adds it again under its name and address. It returns the old
// data dir.
func (s *spoiled) replaceNode3() string {
	s.Helper()
	s.lead(0)
	s.c.Stop(2)
	old := evidencetest.Copy(s.T, s.c.DataDir(2))
	s.c.Leader()
	s.removeThrough(0, 2)
	s.c.Wipe(2)
	s.put(0, 5)
	s.c.AddAgain(2)
	s.put(0, 5)
	s.c.WaitEqual()
	return old
}

// save saves a snapshot through member i.
func (s *spoiled) save(i int) string {
	s.Helper()
	r, err := s.c.Client(i).Snapshot(s.Context())
	ok(s.T, err)
	f, err := os.Create(filepath.Join(s.TempDir(), "backup.db"))
	ok(s.T, err)
	_, err = io.Copy(f, r)
	ok(s.T, err)
	ok(s.T, f.Close())
	ok(s.T, r.Close())
	return f.Name()
}

// restore gives the stopped member i a data dir restored from a snapshot, as one of the members of.
func (s *spoiled) restore(i int, snapshot, token string, of ...int) {
	s.Helper()
	var initial []string
	for _, k := range of {
		initial = append(initial, s.c.Name(k)+"="+s.c.PeerURL(k))
	}
	s.c.Wipe(i)
	line := max("3.6", s.version[:3])
	tool := filepath.Join(filepath.Dir(clustertest.Server(s.T, s.version)), "etcdutl-"+line)
	out, err := exec.CommandContext(s.Context(), tool, "snapshot", "restore", snapshot, "--name", s.c.Name(i),
		"--data-dir", s.c.DataDir(i),
		"--initial-cluster", strings.Join(initial, ","), "--initial-cluster-token", token,
		"--initial-advertise-peer-urls", s.c.PeerURL(i)).CombinedOutput()
	if err != nil {
		s.Fatalf("%v\n%s", err, out)
	}
}

func (s *spoiled) startAll() {
	s.Helper()
	for i := range s.c.Size() {
		s.c.StartProcess(i)
	}
	for i := range s.c.Size() {
		s.c.WaitServing(i)
	}
}
