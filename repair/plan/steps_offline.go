package plan

// clone is the way that writes new data dirs for all members from the best member's database.
func (b *builder) clone() []Step {
	b.add(StepClone, b.best())
	b.add(StepProve, nil)
	b.add(StepHandOut, nil)
	// A clone keeps the configuration as it is; what should not be in it is removed once a majority runs.
	b.each(func(m *Member) {
		if !m.Zombie() { // no clone has its row
			b.add(StepRemove, m)
		}
	}, Remove)
	return b.steps
}

// rebuild is the way that gives every member the rebuilt database.
func (b *builder) rebuild() []Step {
	b.add(StepRebuild, b.best())
	b.add(StepProve, nil)
	b.add(StepHandOut, nil)
	return b.steps
}

// mend is the way that mends files; no other member is touched.
func (b *builder) mend() []Step {
	for _, m := range b.p.ToMend() {
		b.add(StepMend, m)
	}
	b.add(StepProve, nil)
	b.add(StepHandOut, nil)
	return b.steps
}

// only is a way of one step about all members.
func (b *builder) only(k StepKind) []Step {
	b.add(k, nil)
	return b.steps
}

// CloneTargets are the members that get a data dir when all are written anew: those that the best member's list holds.
func (p *Plan) CloneTargets() []Member {
	var out []Member
	for i := range p.Members {
		if m := p.Members[i]; m.Action != Remove && m.Action != Retire && m.Action != Join && m.Action != StandIn {
			out = append(out, m)
		}
	}
	return out
}
