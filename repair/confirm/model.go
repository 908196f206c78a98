package confirm

import (
	"context"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// doubt is an entry that healthy members may have executed differently from the server in the sandbox.
type doubt struct {
	index uint64
	why   string
}

// doubts are the entries that releases execute differently, found by executing the log by the rules of every relevant
// release.
type doubts struct {
	// byRev are the doubtful entries that may write keys, by the revision before them; only the first of each is kept.
	byRev map[int64]doubt
	// buckets are the first doubtful entry for each other bucket.
	buckets map[string]doubt
	// made is the entry for each revision: made[i] creates revision base+1+i.
	base int64
	made []entryID
	// revAt is the revision after the last entry up to each stop.
	revAt map[uint64]int64
	// lists are the members according to the rules of each possible release.
	lists []*apply.Members
}

type entryID struct {
	index, term uint64
	what        string
}

// maxNamed bounds the revisions whose entry is kept, at about 50 bytes each.
const maxNamed = 4_000_000

// findDoubts executes the log on models with the rules of the release that wrote the sources, of the server in the
// sandbox, and of every cluster version in the log. values returns the value of a record from the server's result.
func findDoubts(ctx context.Context, p *Plan, server int, values func(string, dumpdb.Rev) ([]byte, bool)) (*doubts,
	error) {
	minors := append([]int{server, p.Minor}, p.sv.minors...)
	slices.Sort(minors)
	minors = slices.DeleteFunc(slices.Compact(minors), func(m int) bool { return m == 0 })
	models := make([]*replay.Machine, len(minors))
	for i, minor := range minors {
		m, err := replay.NewMachine(ctx, p.Base.db,
			replay.MachineOptions{Version: release.AnyOf(minor), Values: values})
		if err != nil {
			return nil, err
		}
		models[i] = m
	}
	d := &doubts{byRev: map[int64]doubt{}, buckets: map[string]doubt{}, revAt: map[uint64]int64{},
		base: models[0].Revision(), lists: listsOf(p.Base, minors)}
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
	why := ""
	if e.Req.ConfChange != nil {
		why = d.confChange(e.Req.ConfChange)
	}
	var state replay.State
	var effects uint64
	for i, m := range models {
		if by := byAlarm(e.Req, m); by != "" {
			why = by
		}
		st := m.Prepare(*e)
		if !st.Sure {
			why = "patch releases, or members with a waiting client, execute it differently"
		}
		o, _ := m.Apply(st)
		if i > 0 && (o.State != state || st.Effects() != effects) {
			why = "the releases that the log has seen execute it differently"
		}
		state, effects = o.State, st.Effects()
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

// byAlarm returns why members may have executed a change of auth differently under an alarm. No model can decide it: up
// to 3.5 it depends on whether the server was restarted since.
func byAlarm(r *dumplog.Request, m *replay.Machine) string {
	if !r.Kind.ChangesAuth() || !m.AuthEnabled() || m.ChecksPermissions() {
		return ""
	}
	if u, ok := m.User(r.Header.Username); ok && slices.Contains(u.Roles, apply.Root) {
		return ""
	}
	return "under an alarm, members that were not started since did not check permissions (" +
		release.AlarmKeepsChecks.ID + ")"
}

// listsOf returns the members of the base for the rules of each release.
func listsOf(base *Base, minors []int) []*apply.Members {
	out := make([]*apply.Members, len(minors))
	for i, minor := range minors {
		ms := apply.NewMembers(release.AnyOf(minor))
		for _, m := range base.Members {
			ms.Set(dumplog.ID(m.ID), apply.Member{PeerURLs: m.PeerURLs, IsLearner: m.IsLearner})
		}
		for _, id := range base.Removed {
			ms.Removed[dumplog.ID(id)] = true
		}
		out[i] = ms
	}
	return out
}

// confChange executes a conf change by the rules of each release, and returns why they may differ.
func (d *doubts) confChange(c *dumplog.ConfChange) (why string) {
	var first apply.Refusal
	for i, ms := range d.lists {
		clears := ms.UpdateClearsLearner(c)
		refusal := ms.Apply(c)
		limited := refusal == apply.TooManyLearners && ms.Version.Has(release.LearnerLimitOption).Possible()
		switch {
		case limited:
			ms.Take(c)
			why = "how many learners there may be is a flag of the server (" + release.LearnerLimitOption.ID + ")"
		case clears == release.Unknown && refusal == apply.Accepted:
			why = "patch releases differ in whether new URLs keep the learner flag (" + release.UpdateKeepsLearner.ID +
				")"
		case i > 0 && refusal != first:
			why = "the releases that the log has seen execute it differently"
		}
		if i == 0 {
			first = refusal
		}
	}
	return why
}

// maker returns the entry that created a revision of the server's history.
func (d *doubts) maker(rev int64) (entryID, bool) {
	i := rev - d.base - 1
	if i < 0 || i >= int64(len(d.made)) {
		return entryID{}, false
	}
	return d.made[i], true
}

// excuse returns the doubtful entry that may explain a difference at a revision. If both are equal below it, only
// entries at the previous revision can explain it. If part of the history below is compacted, or model and server
// differ, any earlier entry can.
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

// unseen returns an earlier doubtful entry that changes leases or rights but no key: later entries may depend on it.
// Every successful change of rights raises the auth revision. So if rights are equal in the end, the entry had the same
// effect on both.
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
