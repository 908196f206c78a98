package plan

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Step is one action. It is idempotent: it is skipped when Done holds.
type Step struct {
	ID           string   `json:"id"`
	Kind         StepKind `json:"kind"`
	Member       string   `json:"member,omitempty"`
	Title        string   `json:"title"`
	Precondition string   `json:"precondition"`
	Effect       string   `json:"effect"`
	Undo         string   `json:"undo"`
	Done         string   `json:"doneWhen"`
	// ByHand are the commands for doing the step by hand.
	ByHand []Command `json:"byHand"`
}

// builder puts the steps of one procedure in order. voters and up are updated with each step that changes the
// configuration.
type builder struct {
	p   *Plan
	way Mode
	// from is the backup that a restore takes, backup where it is. bare is true for a database without a sha256 at its
	// end, listed are the members in it, nil if they are not known.
	from       string
	backup     shell.Word
	bare       bool
	listed     []dumpdb.Member
	voters, up int
	// said is true once a step says what etcdctl needs.
	said  bool
	steps []Step
}

func (b *builder) each(f func(m *Member), actions ...Action) {
	for _, a := range actions {
		for i := range b.p.Members {
			if b.p.Members[i].Action == a {
				f(&b.p.Members[i])
			}
		}
	}
}

// live is the procedure that keeps the cluster running. Voters that are down are removed first: adding a member is
// refused while one is not connected.
func (b *builder) live() []Step {
	b.each(func(m *Member) { b.add(StepStart, m) }, Start)
	b.add(StepBackup, b.best())
	b.each(b.retire, Retire)
	rejoin := b.rejoining()
	if b.p.Cluster.Voters > 1 {
		b.add(StepMoveLeader, b.best())
	}
	b.each(b.restart, Restart, Best)
	if len(rejoin) > 0 { // while all voters are present
		b.add(StepAdvanceLog, b.best())
	}
	b.each(func(m *Member) {
		if b.p.Removable(m) {
			b.save(m)
			b.add(StepRemove, m)
			b.voters--
		}
	}, Remove)
	for _, m := range rejoin {
		if wentFirst(m) == 1 {
			b.save(m)
			b.takeOut(m)
		}
	}
	for _, m := range rejoin {
		switch {
		case m.Standby != "":
			b.standIn(m)
			continue
		case m.Action == Join:
			b.save(m)
			b.add(StepStop, m)
			b.add(StepSetAside, m)
		case m.Startable:
			b.save(m)
			b.up--
			b.takeOut(m)
		}
		b.bringIn(m)
	}
	b.prove()
	return b.steps
}

// force is the procedure without a majority.
func (b *builder) force() []Step {
	for i := range b.p.Members {
		if m := &b.p.Members[i]; m.Action != Remove && !m.Untouched() &&
			(m.Source != "" || m.Action == Replace) {
			b.add(StepStop, m)
		}
	}
	b.add(StepForceNew, b.best())
	others := b.others()
	if len(others) > 0 {
		b.add(StepAdvanceLog, b.best())
	}
	for _, m := range others {
		b.add(StepSetAside, m)
		b.bringIn(m)
	}
	b.prove()
	return b.steps
}

// others are all future members of the cluster except the best one.
func (b *builder) others() []*Member {
	var out []*Member
	for i := range b.p.Members {
		if m := &b.p.Members[i]; m.Action != Best && m.Action != Remove && m.Action != Retire && !m.Learner {
			out = append(out, m)
		}
	}
	return out
}

func (b *builder) rejoining() []*Member {
	var out []*Member
	b.each(func(m *Member) { out = append(out, m) }, Replace, Join)
	// Those that were removed already come back first, so that voters are missing for as short as possible.
	slices.SortStableFunc(out, func(x, y *Member) int { return wentFirst(y) - wentFirst(x) })
	return out
}

func (b *builder) retire(m *Member) {
	if m.Untouched() {
		return
	}
	b.save(m)
	b.add(StepStop, m)
	b.add(StepSetAside, m)
}

// wentFirst is 1 for a member that is removed before others come back: no server is started on its data dir.
func wentFirst(m *Member) int {
	if m.Action == Replace && !m.Startable && m.Standby == "" {
		return 1
	}
	return 0
}

// takeOut removes a voter. It is stopped first if a majority of the present voters remains without it.
func (b *builder) takeOut(m *Member) {
	if b.up >= b.voters/2+1 {
		b.add(StepStop, m)
		b.add(StepRemove, m)
	} else {
		b.add(StepRemove, m)
		b.add(StepStop, m)
	}
	b.voters--
	b.add(StepSetAside, m)
}

func (b *builder) bringIn(m *Member) {
	b.add(StepAdd, m)
	b.add(StepStartEmpty, m)
	b.add(StepWait, m)
	if b.p.Cluster.KnowsLearners() {
		b.add(StepPromote, m)
	}
	b.voters++
	b.up++
}

// prove ends a procedure: alarms are cleared, and all members must hold the same.
func (b *builder) prove() {
	if b.p.Cluster.raised("CORRUPT") {
		b.add(StepDisarm, nil)
	}
	b.add(StepVerify, nil)
}

func (b *builder) best() *Member { return b.p.Member(b.p.Best.Name) }

// save comes directly before a member is removed: until it is stopped, it acknowledges writes that other members may
// not hold.
func (b *builder) save(m *Member) {
	if m.Zombie() || m.Source == "" && len(m.ClientURLs) == 0 {
		return // nothing runs that could be asked
	}
	b.add(StepSave, m)
}
