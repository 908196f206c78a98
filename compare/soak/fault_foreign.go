package soak

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/release"
)

// foreignFaults bring in files of another cluster, and members that continued by themselves.
var foreignFaults = []Fault{
	{Name: "foreign-db", Apply: foreign("the database", "member/snap/db")},
	{Name: "foreign-log", Apply: foreign("the log", "member/wal")},
	{Name: "foreign-snaps", Apply: foreign("the folder of snapshots and database", "member/snap")},
	{Name: "foreign-dir", Apply: func(f *Victim) (*Effect, error) {
		from := f.foreign()
		if from == "" {
			return nil, errNotHere
		}
		return &Effect{What: "the data dir of another cluster", Witness: func(string) bool { return true },
			Classes: []string{"foreign-cluster", "membership"}}, replace(f.Dir, from)
	}},
	// A cluster like any other, whose log names the rest as removed: who is right only people know.
	{Name: "forced-apart", Apply: func(f *Victim) (*Effect, error) {
		from := f.forced()
		if from == "" {
			return nil, errNotHere
		}
		return &Effect{What: "a new cluster was forced from a copy of it, and continued", Open: true,
			Inconclusive: true, MayShareBest: true}, replace(f.Dir, from)
	}},
}

func (f *Victim) foreign() string {
	if f.Foreign == nil {
		return ""
	}
	return f.Foreign()
}

func (f *Victim) forced() string {
	if f.Forced == nil {
		return ""
	}
	return f.Forced()
}

// foreign replaces a part of the data dir by that of another cluster.
func foreign(what, part string) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		from := f.foreign()
		if from == "" {
			return nil, errNotHere
		}
		part := filepath.FromSlash(part)
		return &Effect{What: what + " of another cluster", Alone: true,
				Classes: append([]string{"foreign-cluster", "membership"}, mixClasses...)},
			replace(filepath.Join(f.Dir, part), filepath.Join(from, part))
	}
}

// foreignDir is the data dir of a cluster of one member that has nothing to do with the history's.
func (r *runner) foreignDir() string {
	if r.foreign == "" && !r.kept {
		c := clustertest.Start(r.t, clustertest.Server(r.t, r.col.lineNow()), 1, clustertest.Options{SnapshotCount: 20})
		for n := range 50 {
			c.Put(0, fmt.Sprintf("/other/k%d", n%7), fmt.Sprintf("of another cluster %d", n))
		}
		c.StopAll()
		r.foreign = c.DataDir(0)
	}
	return r.foreign
}

// addsLearner reports whether a conf change of the log adds a learner.
func addsLearner(dir string) bool {
	segs, err := readLog(dir)
	if err != nil {
		return false
	}
	_, list := entries(segs)
	return slices.ContainsFunc(list, func(e raftpb.Entry) bool {
		var c raftpb.ConfChange
		return e.Type == raftpb.EntryConfChange && c.Unmarshal(e.Data) == nil &&
			c.Type == raftpb.ConfChangeAddLearnerNode
	})
}

// forcedDir is what becomes of a copy of the first member on which a new cluster is forced; others, "", may be
// learners, on which no server starts so.
func (r *runner) forcedDir(i int) string {
	if i > 0 || r.kept || release.Of(r.col.lineNow()).Has(release.ForcedLearnerFails).Certain() &&
		addsLearner(r.col.Members[0].Path) {
		return ""
	}
	if r.forced == "" {
		c := clustertest.Start(r.t, clustertest.Server(r.t, r.col.lineNow()), 1, clustertest.Options{SnapshotCount: 20})
		c.Stop(0)
		c.Wipe(0)
		if err := evidencetest.CopyTo(r.col.Members[0].Path, c.DataDir(0)); err != nil {
			r.t.Fatal(err)
		}
		c.StartOnce(0, "--force-new-cluster")
		if r.col.Setup.Shape.Auth {
			c.Login("root", "root secret")
		}
		c.WaitServing(0)
		ctx, cancel := context.WithTimeout(context.Background(), clustertest.Patience)
		defer cancel()
		for n := range 6 { // refused while an alarm is raised
			_, _ = c.Client(0).Put(ctx, fmt.Sprintf("/app/k%02d", n), fmt.Sprintf("after the split %d", n))
		}
		c.StopAll()
		r.forced = c.DataDir(0)
	}
	return r.forced
}
