package check_test

import (
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

const (
	confStateOfAll    = `{"voters":[161,162,163],"auto_leave":false}`
	confStateOld      = `{"voters":[77777,88888,99999],"auto_leave":false}`
	confStateStranger = `{"voters":[77777,161,162,163],"auto_leave":false}`
)

// TestConfState: an ID in meta/confState that was never a member is an error where the logs show the founding, or where
// another member shows what was stored; after a restore nothing else shows it.
func TestConfState(t *testing.T) {
	for name, c := range map[string]struct {
		version, row     string
		restored, single bool
		want             check.Outcome
		members          []string
	}{
		"sound": {version: "3.6.0", row: confStateOfAll, want: check.Holds},
		"older than the configuration": {version: "3.6.0", row: `{"voters":[161],"auto_leave":false}`,
			want: check.Violated, members: []string{"node2"}},
		"older than the configuration, alone": {version: "3.6.0", row: `{"voters":[161],"auto_leave":false}`, single: true,
			want: check.Holds},
		"a voter left out": {version: "3.6.0", row: `{"voters":[161,163],"auto_leave":false}`, want: check.Violated,
			members: []string{"node2"}},
		"a voter as learner, alone": {version: "3.5.0", row: `{"voters":[161,162],"learners":[163],"auto_leave":false}`,
			single: true, want: check.Violated, members: []string{"node2"}},
		"a voter left out, restored": {version: "3.6.0", row: `{"voters":[161,163],"auto_leave":false}`, restored: true,
			want: check.Violated, members: []string{"node2"}},
		"a voter left out, restored, alone": {version: "3.6.0", row: `{"voters":[161,163],"auto_leave":false}`, restored: true,
			single: true, want: check.NotChecked},
		"a stranger": {version: "3.6.0", row: confStateStranger, want: check.Violated,
			members: []string{"node2"}},
		"a stranger on 3.5, alone": {version: "3.5.0", row: confStateStranger, single: true, want: check.Violated,
			members: []string{"node2"}},
		"a stranger, restored": {version: "3.6.0", row: confStateStranger, restored: true, want: check.Violated,
			members: []string{"node2"}},
		"only strangers": {version: "3.6.0", row: confStateOld, want: check.Violated, members: []string{"node2"}},
		"only strangers, restored": {version: "3.6.0", row: confStateOld, restored: true, want: check.Violated,
			members: []string{"node1", "node2", "node3"}},
		"a stranger, restored, alone": {version: "3.6.0", row: confStateStranger, restored: true, single: true,
			want: check.NotChecked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clustertest.NewScript(c.version)
			for i := range s.Members {
				s.Start(i)
			}
			s.Add(step(0, "", putKey("/a", 0)))
			dirs := s.Write(t, t.TempDir())
			for i, d := range dirs {
				row := confStateOfAll
				if i == 1 {
					row = c.row
				}
				casetest.EditDB(t, d, put("meta", "confState", []byte(row)))
			}
			if c.single {
				dirs = dirs[1:2]
			}
			in := inputOf(t, dirs...)
			for _, m := range in.Members {
				if c.restored {
					m.WAL.Summary.Start = dumplog.StartRestore
				}
			}
			r := run(t, in, "M18")
			if got := accused(r); r.Outcome != c.want || !slices.Equal(got, c.members) {
				t.Errorf("%s %v, want %s %v: %+v", r.Outcome, got, c.want, c.members, r.Findings)
			}
		})
	}
}

// TestKeptConfStatesInAnyOrder: the break is where the first of the members is, whatever the order of the sources.
func TestKeptConfStatesInAnyOrder(t *testing.T) {
	s := clustertest.NewScript("3.6.0")
	for i := range s.Members {
		s.Start(i)
	}
	s.Add(step(0, "", putKey("/a", 0)))
	dirs := s.Write(t, t.TempDir())
	for i, row := range []string{confStateOld, `{"voters":[65536]}`, confStateOld} {
		casetest.EditDB(t, dirs[i], put("meta", "confState", []byte(row)))
	}
	var at []check.At
	for range 2 {
		in := inputOf(t, dirs...)
		for _, m := range in.Members {
			m.WAL.Summary.Start = dumplog.StartRestore
			if m.Label() == "node1" {
				m.AppliedMin--
			}
		}
		r := run(t, in, "M18")
		if len(r.Findings) != 1 || r.Findings[0].Kind != check.KindConfStateKeptDiffers {
			t.Fatalf("%s: %+v", r.Outcome, r.Findings)
		}
		at = append(at, r.Findings[0].At)
		slices.Reverse(dirs)
	}
	if at[0] != at[1] {
		t.Errorf("%+v, in another order %+v", at[0], at[1])
	}
}
