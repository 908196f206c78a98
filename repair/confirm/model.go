package confirm

import (
	"context"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// doubt is an entry that sound members may have executed otherwise than the server in the sandbox.
type doubt struct {
	index uint64
	why   string
}

// doubts are the entries that releases execute differently, found by executing the log by the rules of every release concerned.
type doubts struct {
	// byRev are the doubtful entries that may write keys, by the revision before them; only the first of each is kept.
	byRev map[int64]doubt
	// buckets are the first doubtful entry for each other bucket.
	buckets map[string]doubt
	// made is the entry that makes a revision: made[i] makes revision base+1+i.
	base int64
	made []entryID
	// revAt is the revision after the last entry up to each stop.
	revAt map[uint64]int64
	// oldest is the lowest 3.x minor that may have executed the log, alarms counts those that are raised.
	oldest, alarms int
	// learners are those that the log has added so far and not promoted or removed.
	learners map[dumplog.ID]bool
}

type entryID struct {
	index, term uint64
	what        string
}

// maxNamed bounds the revisions of which the entry is kept, about 50 bytes each.
const maxNamed = 4_000_000

// findDoubts executes the log on models with the rules of the release that wrote the sources, of the server in the sandbox, and of every
// release that the log has seen. values fetches the value of a record from the server's result.
func findDoubts(ctx context.Context, p *Plan, server int, values func(string, dumpdb.Rev) ([]byte, bool)) (*doubts, error) {
	minors := append([]int{server, p.Minor}, p.sv.minors...)
	slices.Sort(minors)
	minors = slices.DeleteFunc(slices.Compact(minors), func(m int) bool { return m == 0 })
	models := make([]*replay.Machine, len(minors))
	for i, minor := range minors {
		m, err := replay.NewMachine(ctx, p.Base.db, replay.MachineOptions{Version: release.AnyOf(minor), Values: values})
		if err != nil {
			return nil, err
		}
		models[i] = m
	}
	d := &doubts{byRev: map[int64]doubt{}, buckets: map[string]doubt{}, revAt: map[uint64]int64{}, base: models[0].Revision(), learners: map[dumplog.ID]bool{}}
	if d.oldest = minors[0]; p.Base.db != nil {
		raised, err := p.Base.db.Alarms()
		if err != nil {
			return nil, err
		}
		d.alarms = len(raised)
	}
	for _, m := range p.Base.Members {
		if m.IsLearner {
			d.learners[dumplog.ID(m.ID)] = true
		}
	}
	lead := models[slices.Index(minors, server)]
	end := p.Stops[len(p.Stops)-1]
	for e, err := range replay.Log(ctx, p.logs) {
		switch {
		case err != nil:
			return nil, err
		case e.Index <= p.Base.Index:
			continue
		case e.Index > end:
			return d, nil
		}
		d.entry(&e, models, lead)
		if slices.Contains(p.Stops, e.Index) {
			d.revAt[e.Index] = lead.Revision()
		}
	}
	return d, nil
}

// entry executes one entry on all models.
func (d *doubts) entry(e *replay.Entry, models []*replay.Machine, lead *replay.Machine) {
	before := lead.Revision()
	why := d.byPatch(e.Req, lead)
	var state replay.State
	var effects uint64
	for i, m := range models {
		st := m.Prepare(*e)
		if !st.Sure {
			why = "patch releases, or members with a waiting client, execute it differently"
		}
		o, _ := m.Apply(st)
		if i > 0 && (o.State != state || st.Effects() != effects) {
			why = "the releases that the log has seen execute it differently"
		}
		state, effects = o.State, st.Effects()
		if m == lead {
			d.alarm(e.Req, o.State)
		}
	}
	if lead.Revision() > before && len(d.made) < maxNamed && int64(len(d.made)) == before-d.base {
		d.made = append(d.made, entryID{e.Index, e.Term, e.Describe()})
	}
	if why == "" && e.Disputed {
		why = "the logs hold different entries at this index"
	}
	if why == "" {
		return
	}
	x := doubt{e.Index, why}
	if _, ok := d.byRev[before]; !ok && (replay.WritesKeys(e.Req.Kind) || e.Disputed) {
		d.byRev[before] = x
	}
	for _, bucket := range replay.TouchedBuckets(e.Req) {
		if _, ok := d.buckets[bucket]; !ok {
			d.buckets[bucket] = x
		}
	}
	if _, ok := d.buckets["auth"]; !ok && e.Req.Kind.ChangesAuth() {
		d.buckets["auth"] = x
	}
}

// alarm counts the alarms that are raised.
func (d *doubts) alarm(r *dumplog.Request, state replay.State) {
	if r.Alarm == nil || state != replay.Applied {
		return
	}
	if r.Alarm.Action == 1 {
		d.alarms++
	} else {
		d.alarms--
	}
}

// byPatch says why patch releases execute a request differently, "" when they do not, as far as a model does not say so itself.
func (d *doubts) byPatch(r *dumplog.Request, m *replay.Machine) string {
	switch {
	case r.ConfChange != nil:
		return d.confChange(r.ConfChange)
	case r.LeaseRevoke != nil && d.oldest <= 5 && m.AuthEnabled() && r.Header.AuthRevision < m.AuthRevision():
		return "before 3.4.27 and 3.5.10 a revoke with an old auth revision is refused, root's as well"
	case r.Txn != nil && d.alarms > 0 && nestedPut(r.Txn):
		return "under an alarm newer patch releases count puts in nested transactions"
	case r.Kind.ChangesAuth() && d.alarms > 0 && d.oldest <= 5 && m.AuthEnabled() && !isRoot(m, r.Header.Username):
		return "up to 3.5 an alarm that is raised lifts the checks of permissions until the next start"
	case r.Kind == dumplog.KindAuthRoleAdd && r.Auth != nil && r.Auth.Role == "":
		return "3.3 takes a role without a name, later releases refuse it"
	case r.Kind == dumplog.KindAuthRoleGrantPermission && r.Auth != nil && (r.Auth.Perm == nil || emptyRange(r.Auth.Perm)):
		return "newer patch releases refuse a permission for nothing"
	}
	return ""
}

func isRoot(m *replay.Machine, name string) bool {
	u, ok := m.User(name)
	return ok && slices.Contains(u.Roles, "root")
}

func nestedPut(t *dumplog.TxnRequest) bool {
	for _, ops := range [][]dumplog.RequestOp{t.Success, t.Failure} {
		for _, op := range ops {
			if op.Txn != nil && anyPut(op.Txn) {
				return true
			}
		}
	}
	return false
}

func anyPut(t *dumplog.TxnRequest) bool {
	for _, ops := range [][]dumplog.RequestOp{t.Success, t.Failure} {
		for _, op := range ops {
			if op.Put != nil {
				return true
			}
		}
	}
	return nestedPut(t)
}

// confChange: before 3.5.31, 3.6.12 and 3.7.0 new URLs make a learner a voter in the bucket; how many learners there may be is a flag
// (--max-learners, one unless it is set).
func (d *doubts) confChange(c *dumplog.ConfChange) string {
	switch {
	case c.Type == dumplog.ConfChangeUpdateNode && d.learners[c.NodeID]:
		return "newer patch releases keep the learner flag when URLs change"
	case c.Type == dumplog.ConfChangeAddLearnerNode && len(d.learners) > 0:
		d.learners[c.NodeID] = true
		return "how many learners there may be is a flag of the server"
	case c.Type == dumplog.ConfChangeAddLearnerNode:
		d.learners[c.NodeID] = true
	case c.Type != dumplog.ConfChangeUpdateNode:
		delete(d.learners, c.NodeID)
	}
	return ""
}

func emptyRange(p *dumplog.Permission) bool {
	end := string(p.RangeEnd)
	return end != "" && end != "\x00" && strings.Compare(string(p.Key), end) >= 0
}

// maker is the entry that makes a revision of the server's history.
func (d *doubts) maker(rev int64) (entryID, bool) {
	i := rev - d.base - 1
	if i < 0 || i >= int64(len(d.made)) {
		return entryID{}, false
	}
	return d.made[i], true
}

// excuse is the doubtful entry that may explain that histories part at a revision. When both are equal below it, only entries executed
// at the revision before can; where a part below is compacted away, any before it. The latter also where model and server differ.
func (d *doubts) excuse(rev int64, exact bool) (doubt, bool) {
	if exact {
		x, ok := d.byRev[rev-1]
		return x, ok
	}
	best, found := doubt{}, false
	for before, x := range d.byRev {
		if before < rev && (!found || x.index < best.index) {
			best, found = x, true
		}
	}
	return best, found
}

// unseen is a doubtful entry that changes leases or rights and no key, before the one that makes a revision: what follows may depend
// on it. Every change of rights that succeeds raises the auth revision, so where rights are equal in the end it ended alike.
func (d *doubts) unseen(rev int64, rightsDiffer bool) (doubt, bool) {
	made, known := d.maker(rev)
	for _, bucket := range []string{"auth", "lease"} {
		x, ok := d.buckets[bucket]
		if ok && (!known || x.index < made.index) && (bucket != "auth" || rightsDiffer) {
			return x, true
		}
	}
	return doubt{}, false
}
