package check

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestSnapFilesRemoved: without the file of its newest snapshot a server starts from an older one, or from the whole log.
func TestSnapFilesRemoved(t *testing.T) {
	file := func(index uint64) *dumplog.SnapFile {
		return &dumplog.SnapFile{Index: index, Term: 2, NameIndex: index, NameTerm: 2}
	}
	for name, c := range map[string]struct {
		first uint64
		files []*dumplog.SnapFile
		want  Severity
	}{
		"the file is there":             {1, []*dumplog.SnapFile{file(50)}, ""},
		"the whole log":                 {1, nil, Warning},
		"an older file":                 {30, []*dumplog.SnapFile{file(30)}, Warning},
		"the log begins later":          {40, []*dumplog.SnapFile{file(30)}, Error},
		"the log begins later, no file": {40, nil, Error},
	} {
		t.Run(name, func(t *testing.T) {
			s := &dumplog.Summary{FirstIndex: c.first, LastIndex: 60,
				Snapshots: []dumplog.SnapshotRecord{{Index: 20, Term: 2}, {Index: 30, Term: 2}, {Index: 50, Term: 2}}}
			m := &evidence.Member{Source: &evidence.Source{}, WAL: &evidence.WAL{Summary: s}, Snap: &dumplog.SnapDir{Files: c.files}, Version: evidence.Version{Minor: 5, Text: "3.5.x"}}
			got := Severity("")
			if f := snapFilesRemoved(m); f != nil {
				got = f.Severity
			}
			if got != c.want {
				t.Errorf("severity %q, want %q", got, c.want)
			}
		})
	}
}

// TestVersionByLog: the cluster version is compared with the log as far as the log holds all that was applied.
func TestVersionByLog(t *testing.T) {
	for name, c := range map[string]struct {
		applied, last uint64
		gaps          []replay.Gap
		stored        string
		want          int
	}{
		"as the log set it":              {20, 20, nil, "3.5.0", 0},
		"another one":                    {20, 20, nil, "3.6.0", 1},
		"the log ends before it":         {25, 20, nil, "3.6.0", 0},
		"a hole before what was applied": {20, 20, []replay.Gap{{From: 12, To: 14}}, "3.6.0", 0},
		"a hole before the entry":        {20, 20, []replay.Gap{{From: 5, To: 8}}, "3.6.0", 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := &evidence.Member{Source: &evidence.Source{}, DB: &evidence.DB{}, AppliedMin: c.applied, AppliedMax: c.applied}
			m.DB.Cluster.Version = c.stored
			versions := []replay.VersionSet{{Index: 10, Version: "3.5.0"}}
			in := &Input{Members: []*evidence.Member{m}, Replay: &replay.Result{First: 1, Last: c.last, Gaps: c.gaps, Survey: &replay.Survey{Versions: versions}}}
			if got := in.impossibleVersions(m); len(got) != c.want {
				t.Errorf("%+v, want %d findings", got, c.want)
			}
		})
	}
}
