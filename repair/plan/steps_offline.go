package plan

// clone is the procedure that writes new data dirs for all members from the best member's database.
func (b *builder) clone() []Step {
	b.add(StepClone, b.best())
	b.add(StepProve, nil)
	b.add(StepHandOut, nil)
	// A clone keeps the configuration as it is; surplus members are removed once a majority runs.
	b.each(func(m *Member) {
		if !m.Zombie() { // clones do not have its row
			b.add(StepRemove, m)
		}
	}, Remove)
	return b.steps
}

// rebuild is the procedure that gives every member the rebuilt database.
func (b *builder) rebuild() []Step {
	b.add(StepRebuild, b.best())
	b.add(StepProve, nil)
	b.add(StepHandOut, nil)
	return b.steps
}

// mend is the procedure that mends files; no other member is changed.
func (b *builder) mend() []Step {
	for _, m := range b.p.ToMend() {
		b.add(StepMend, m)
	}
	b.add(StepProve, nil)
	b.add(StepHandOut, nil)
	return b.steps
}

// only is a procedure of one step about all members.
func (b *builder) only(k StepKind) []Step {
	b.add(k, nil)
	return b.steps
}

// CloneTargets are the members that get a new data dir when all are written: those in the best member's list.
func (p *Plan) CloneTargets() []Member {
	var out []Member
	for i := range p.Members {
		if m := p.Members[i]; m.Action != Remove && m.Action != Retire && m.Action != Join && m.Action != StandIn {
			out = append(out, m)
		}
	}
	return out
}
