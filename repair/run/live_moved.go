package run

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
)

// moved reports the changes in the cluster since the plan's copies were made. It refuses if members that are removed
// have accepted writes that the best member lacks and the plan does not list.
func (f *liveCheck) moved(ctx context.Context) (notes []string, err error) {
	r := f.r
	notes = givenUp(r.plan)
	st, err := r.goal(ctx)
	if err != nil {
		return nil, err
	}
	best := Drift{Member: r.best().Name, PlannedRevision: r.plan.Best.Revision, PlannedIndex: r.plan.Best.AppliedIndex,
		Revision: st.Header.GetRevision(), AppliedIndex: st.RaftAppliedIndex}
	r.out.Drift = append(r.out.Drift, best)
	notes = append(notes, r.drifts.tell(&best))
	var bad []*Drift
	leaving := 0
	for i := range r.plan.Members {
		m := &r.plan.Members[i]
		if !leaves(m) || r.idOf(m) != uint64(m.ID) {
			continue
		}
		if why := f.serves(ctx, m); why != nil {
			if !errors.Is(why, errSilent) {
				notes = append(notes, fmt.Sprintf("what %s accepted since its data dir was copied is not compared: %s",
					m.Name, r.silence(m, why)))
			}
			continue
		}
		d, err := r.drifts.drift(ctx, m)
		if err != nil {
			return nil, err
		}
		r.out.Drift = append(r.out.Drift, *d)
		notes = append(notes, r.drifts.tell(d))
		if leaving++; d.Unlisted > 0 {
			bad = append(bad, d)
		}
	}
	if leaving > 0 {
		notes = append(notes, fmt.Sprintf("until it is stopped, a member that differs keeps acknowledging writes "+
			"that %s may refuse; they remain in its old data dir, which is moved aside, and up to the time of its "+
			"snapshot also in the snapshot",
			r.best().Name))
	}
	if len(bad) > 0 && !f.o.AcceptLost {
		return nil, refusal.New("copy the data dirs again and plan again, so that the plan lists them; or accept it: "+
			"the snapshots that are taken first hold them",
			"%v", r.drifts.unaccepted(bad...))
	}
	return notes, nil
}

// givenUp says what is lost with the best member's content.
func givenUp(p *plan.Plan) (notes []string) {
	if n := p.Lost.CommittedEntries; n > 0 {
		notes = append(notes, fmt.Sprintf("%s that %s lacks are lost, as the plan lists them; the plan has the "+
			"commands that save them", plural.Of(n, "committed effect", "committed effects"), p.Best.Name))
	}
	if wrong := p.Lost.Records.Loses(p.Best.Name); wrong != "" {
		notes = append(notes, wrong+" is lost, as the plan lists it")
	}
	return notes
}

// leaves reports whether the repair drops the present content of a member.
func leaves(m *plan.Member) bool {
	return m.Rejoins() || m.Action == plan.Retire || m.Action == plan.Remove
}

// unaccepted says what would be lost.
func (ds *drifts) unaccepted(bad ...*Drift) error {
	var parts []string
	for _, d := range bad {
		parts = append(parts, fmt.Sprintf("%s of %s (%s)", plural.Of(d.Unlisted, "key", "keys"), d.Member, shown(d)))
	}
	return fmt.Errorf("writes acknowledged since the data dirs were copied would be lost that the plan does not "+
		"list: %s lacks the present state of %s",
		ds.best().Name, strings.Join(parts, ", "))
}

// shown names some of the keys.
func shown(d *Drift) string {
	var names []string
	for _, k := range d.UnlistedKeys[:min(len(d.UnlistedKeys), 5)] {
		names = append(names, keyText(k))
	}
	if d.Unlisted > len(names) {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

func keyText(k check.Bytes) string {
	if k.Printable() {
		return string(k)
	}
	return fmt.Sprintf("%q", string(k))
}

// tell describes a drift.
func (ds *drifts) tell(d *Drift) string {
	var ways []string
	if d.Revision != d.PlannedRevision {
		ways = append(ways, fmt.Sprintf("from revision %d to %d", d.PlannedRevision, d.Revision))
	}
	if d.AppliedIndex > 0 && d.AppliedIndex != d.PlannedIndex { // servers of 3.3 do not say it
		ways = append(ways, fmt.Sprintf("from applied index %d to %d", d.PlannedIndex, d.AppliedIndex))
	}
	text := fmt.Sprintf("%s is at revision %d, as its copy", d.Member, d.Revision)
	if len(ways) > 0 {
		text = fmt.Sprintf("%s went %s since its data dir was copied", d.Member, strings.Join(ways, " and "))
	}
	switch {
	case d.Member == ds.best().Name:
	case d.Unlisted > 0:
		text += fmt.Sprintf("; %s it holds them are not on %s: %s", plural.Of(d.Unlisted, "key as", "keys as"),
			ds.best().Name,
			shown(d))
	case d.Unknown == "":
		text += "; it accepted nothing that " + ds.best().Name + " lacks"
	}
	if d.Unknown != "" {
		text += "; " + d.Unknown
	}
	return text
}
