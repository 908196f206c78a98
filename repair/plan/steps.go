package plan

import "slices"

// Step is one act. It is idempotent: when Done holds it is passed over.
type Step struct {
	ID           string   `json:"id"`
	Kind         StepKind `json:"kind"`
	Member       string   `json:"member,omitempty"`
	Title        string   `json:"title"`
	Precondition string   `json:"precondition"`
	Effect       string   `json:"effect"`
	Undo         string   `json:"undo"`
	Done         string   `json:"doneWhen"`
	// ByHand are the commands for those who do the step themselves.
	ByHand []Command `json:"byHand"`
}

// builder puts the steps of one way in order. voters and up follow the configuration as the steps change it.
type builder struct {
	p   *Plan
	way Mode
	// from is the backup that a restore takes.
	from       string
	voters, up int
	steps      []Step
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

// live is the way that keeps the cluster running. Voters that are down go first: adding a member is refused while one
// is not connected.
func (b *builder) live() []Step {
	b.each(func(m *Member) { b.add(StepStart, m) }, Start)
	b.add(StepBackup, b.best())
	b.each(b.retire, Retire)
	rejoin := b.rejoining()
	if b.p.Cluster.Voters > 1 {
		b.add(StepMoveLeader, b.best())
	}
	b.each(b.restart, Restart, Best)
	if len(rejoin) > 0 { // while all voters are there
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

// force is the way without a majority.
func (b *builder) force() []Step {
	for i := range b.p.Members {
		if m := &b.p.Members[i]; m.Action != Remove && m.Obstacle != ObstacleNameTaken &&
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

// others are the members that are to be part of the cluster beside the best one.
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
	// Those that are out already come back first: the cluster then has as few voters as it must for as short as it can
	// be.
	slices.SortStableFunc(out, func(x, y *Member) int { return wentFirst(y) - wentFirst(x) })
	return out
}

func (b *builder) retire(m *Member) {
	if m.Obstacle == ObstacleNameTaken {
		return
	}
	b.save(m)
	b.add(StepStop, m)
	b.add(StepSetAside, m)
}

// wentFirst is 1 for a member that is taken out before others come back: no server is started on its data dir.
func wentFirst(m *Member) int {
	if m.Action == Replace && !m.Startable && m.Standby == "" {
		return 1
	}
	return 0
}

// takeOut removes a voter. Stopping it first is the calmer way, but only while a majority of the present voters goes on
// without it.
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

// prove ends a way: alarms go, and all members must hold the same.
func (b *builder) prove() {
	if len(b.p.Cluster.Alarms) > 0 {
		b.add(StepDisarm, nil)
	}
	b.add(StepVerify, nil)
}

func (b *builder) best() *Member { return b.p.Member(b.p.Best.Name) }

// save comes right before a member is taken out: it goes on acknowledging writes until it is stopped, and no other
// member may hold them.
func (b *builder) save(m *Member) {
	if m.Zombie() || m.Source == "" && len(m.ClientURLs) == 0 {
		return // nothing runs that could be asked
	}
	b.add(StepSave, m)
}
