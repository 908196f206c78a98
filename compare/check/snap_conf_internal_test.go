package check

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestSnapConf: up to 3.4, raft's configuration in a .snap file is that of the member list in it.
func TestSnapConf(t *testing.T) {
	listed := &dumplog.V2Store{Members: []dumplog.V2Member{{ID: 1}, {ID: 2}, {ID: 3, IsLearner: true}}}
	for name, c := range map[string]struct {
		minor    int
		v2       *dumplog.V2Store
		conf     dumplog.ConfState
		found    bool
		compared bool
	}{
		"equal":              {4, listed, dumplog.ConfState{Voters: []dumplog.ID{2, 1}, Learners: []dumplog.ID{3}}, false, true},
		"a voter more":       {4, listed, dumplog.ConfState{Voters: []dumplog.ID{1, 2, 9}, Learners: []dumplog.ID{3}}, true, true},
		"a voter less":       {3, listed, dumplog.ConfState{Voters: []dumplog.ID{1}, Learners: []dumplog.ID{3}}, true, true},
		"a learner as voter": {4, listed, dumplog.ConfState{Voters: []dumplog.ID{1, 2, 3}}, true, true},
		"3.5":                {5, listed, dumplog.ConfState{Voters: []dumplog.ID{1}}, false, false},
		"not known":          {0, listed, dumplog.ConfState{Voters: []dumplog.ID{1}}, false, false},
		"no member list":     {4, &dumplog.V2Store{}, dumplog.ConfState{Voters: []dumplog.ID{1}}, false, false},
	} {
		m := &evidence.Member{Version: evidence.Version{Minor: c.minor}, Source: &evidence.Source{}}
		f, ok := confAgainstV2(m, &dumplog.SnapFile{Index: 7, ConfState: c.conf, V2: c.v2})
		if (f != nil) != c.found || ok != c.compared {
			t.Errorf("%s: %+v, compared: %t", name, f, ok)
		}
	}
}
