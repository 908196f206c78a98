//go:build e2e

package run

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/surgery"
)

// TestE2ERepairZombies: rows of members that are long gone, which 3.6 lists and counts.
func TestE2ERepairZombies(t *testing.T) {
	haunt := func(s *spoiled) []string {
		s.c.StopAll()
		for i := range s.c.Size() {
			editDB(s.T, s.c.DataDir(i), zombieRow)
		}
		return s.c.Sources()
	}
	crowd := func(s *spoiled) []string {
		s.c.StopAll()
		for i := range s.c.Size() {
			editDB(s.T, s.c.DataDir(i), zombieRows(3))
		}
		return s.c.Sources()
	}
	acts := func(others plan.Action) map[string]plan.Action {
		return map[string]plan.Action{"node1": plan.Best, "node2": others, "node3": others, "b9": plan.Remove}
	}
	runTroubles(t, []trouble{
		{name: "zombie before an upgrade", lines: []string{"3.5.35"}, live: []string{"3.5.35"},
			spoil: func(_ *testing.T, s *spoiled) []string { return haunt(s) },
			want: wanted{mode: plan.Live, acts: acts(plan.Restart), why: map[string]string{"b9": "zombie"},
				says: []string{"3.5.26"}}},
		{name: "zombie of an old release", lines: []string{"3.5.0"},
			spoil: func(_ *testing.T, s *spoiled) []string { s.repairedBy = "3.5.35"; return haunt(s) },
			want: wanted{mode: plan.Live, acts: acts(plan.Restart), why: map[string]string{"b9": "zombie"},
				says: []string{"3.5.26"}}},
		{name: "zombie in 3.6", lines: []string{"3.6.16"},
			spoil: func(_ *testing.T, s *spoiled) []string { return haunt(s) },
			want: wanted{class: "membership", cause: "zombie-members-v3-bucket", mode: plan.MendFiles,
				acts: map[string]plan.Action{"node1": plan.MendIt, "node2": plan.MendIt, "node3": plan.MendIt,
					"b9": plan.Remove},
				why:  map[string]string{"b9": "zombie", "node2": "bucket members lists"},
				says: []string{"never run etcdctl member remove"},
				not:  map[plan.Mode]string{plan.Live: "panics", plan.Reseed: "panics"}}},
		{name: "zombie in 3.7", lines: []string{"3.7.3"}, live: []string{"3.7.3"},
			spoil: func(_ *testing.T, s *spoiled) []string { return haunt(s) },
			want: wanted{class: "membership", cause: "zombie-members-v3-bucket", mode: plan.Live, acts: acts(plan.Keep),
				why: map[string]string{"b9": "zombie"}}},
		{name: "as many zombies as members before an upgrade", lines: []string{"3.5.35"},
			spoil: func(_ *testing.T, s *spoiled) []string { return crowd(s) }, want: wanted{mode: plan.Live}},
		{name: "as many zombies as members", lines: []string{"3.7.3", "3.6.16"},
			spoil: func(_ *testing.T, s *spoiled) []string { return crowd(s) },
			want: wanted{class: "membership", cause: "zombie-members-v3-bucket", mode: plan.MendFiles,
				not: map[plan.Mode]string{plan.Live: "", plan.Reseed: ""}}},
	})
}

// TestE2EZombieRemoval is why no plan removes zombies on 3.6: the servers do not survive it; those of 3.7, where
// such rows are voters, do. And it is how a cluster of 3.6 that runs gets rid of them: the rows are mended in one
// stopped member after the other.
func TestE2EZombieRemoval(t *testing.T) {
	for version, survives := range map[string]bool{"3.6.16": false, "3.7.3": true} {
		t.Run(version, func(t *testing.T) { zombieRemoval(t, version, survives) })
	}
}

func zombieRemoval(t *testing.T, version string, survives bool) {
	t.Parallel()
	s := &spoiled{T: t, c: clustertest.Start(t, clustertest.Server(t, version), 3, clustertest.Options{}),
		version: version, made: map[string]string{}}
	s.put(0, 10)
	s.c.StopAll()
	for i := range 3 {
		editDB(t, s.c.DataDir(i), zombieRow)
	}
	s.startAll()
	if n := s.members(0); n != 4 {
		t.Fatalf("%d members are listed", n)
	}
	if !survives {
		s.mendOneByOne()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := s.c.Client(0).MemberRemove(ctx, zombieID)
	t.Log("member remove:", err)
	if survives {
		ok(t, err)
		s.c.WaitEqual()
		for i := range 3 {
			if n := s.members(i); n != 3 {
				t.Errorf("%s lists %d members", s.c.Name(i), n)
			}
		}
		return
	}
	for i := range 3 {
		s.c.WaitExit(i)
	}
}

// mendOneByOne mends the rows in one stopped member after the other, and haunts all of them again.
func (s *spoiled) mendOneByOne() {
	s.Helper()
	for i := range 3 {
		s.c.Stop(i)
		out := filepath.Join(s.TempDir(), "mended")
		_, err := surgery.Run(s.Context(), surgery.Options{Source: evidence.Spec{Where: s.c.DataDir(i)}, Out: out},
			surgery.Meta{MembersFromRaft: true})
		ok(s.T, err)
		s.c.Wipe(i)
		ok(s.T, os.Rename(out, s.c.DataDir(i)))
		s.c.StartProcess(i)
		s.c.WaitServing(i)
		if n := s.members(i); n != 3 {
			s.Errorf("%s lists %d members", s.c.Name(i), n)
		}
		s.put(i, 3)
	}
	s.c.WaitEqual()
	s.c.StopAll()
	for i := range 3 {
		editDB(s.T, s.c.DataDir(i), zombieRow)
	}
	s.startAll()
}

// members is how many members member i lists.
func (s *spoiled) members(i int) int {
	s.Helper()
	list, err := s.c.Client(i).MemberList(s.Context(), clientv3.WithSerializable())
	ok(s.T, err)
	return len(list.Members)
}
