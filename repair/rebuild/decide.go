package rebuild

import (
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/release"
)

// decide replaces a step whose outcome depends on the patch release, which no source shows, by the one that the members' databases show.
// Where none shows this entry, the step stays as uncertain, and follows what the last such entry showed.
func (e *engine) decide(m *replay.Machine, st *replay.Step) {
	if st.Rule == nil || st.Sure {
		return
	}
	with, ok1 := m.Version().Narrow(st.Rule, true)
	without, ok2 := m.Version().Narrow(st.Rule, false)
	if !ok1 || !ok2 {
		return
	}
	yes, no := m.PrepareAs(st.Entry, with), m.PrepareAs(st.Entry, without)
	follows, shown := e.witness(&yes, &no, m.Revision()+1)
	if !shown {
		if follows, shown = e.leaning[st.Rule]; !shown {
			return
		}
		yes.Sure, no.Sure = false, false
	} else {
		e.leaning[st.Rule] = follows
	}
	if follows {
		*st = yes
	} else {
		*st = no
	}
}

// witness asks the members' databases which of two steps was taken, of which one writes and the other does not.
func (e *engine) witness(yes, no *replay.Step, rev int64) (follows, shown bool) {
	writes := yes
	if no.Writes() > 0 {
		writes = no
	}
	if yes.Writes() > 0 && no.Writes() > 0 || writes.Writes() == 0 {
		return false, false
	}
	wrote := map[bool]bool{}
	for _, m := range e.b.members {
		if did, ok := wroteAt(m, writes, rev); ok {
			wrote[did] = true
		}
	}
	if len(wrote) != 1 {
		return false, false // none shows it, or they disagree
	}
	return wrote[true] == (writes == yes), true
}

// wroteAt tells whether the records of a revision are those of the step; ok is false where the database does not show that revision.
func wroteAt(m *evidence.Member, st *replay.Step, rev int64) (did, ok bool) {
	if !m.HasDB() || m.DB.KVDamaged || m.DB.Meta.CompactRev() >= rev {
		return false, false
	}
	n := 0
	for r, err := range m.DB.Handle.RevisionsBetween(dumpdb.Rev{Main: rev}, dumpdb.Rev{Main: rev + 1}) {
		switch {
		case err != nil || r.Err != nil:
			return false, false
		case !st.Touches(string(r.KV.Key)):
			return false, true
		}
		n++
	}
	return n == st.Writes(), n > 0 || m.AppliedMin >= st.Entry.Index
}

// leanings are the rules that an entry showed to be followed, or not.
type leanings map[*release.Rule]bool
