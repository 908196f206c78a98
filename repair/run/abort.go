package run

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/shell"
)

// WayBack says what a run has done that stopping does not undo, and how to undo it.
type WayBack struct {
	SchemaVersion int    `json:"schemaVersion"`
	Plan          string `json:"plan"`
	// Run and Mode are those of the newest run that was not a rehearsal; Run is 0 when there is none. State is that of
	// the run.
	Run   int       `json:"run"`
	Mode  plan.Mode `json:"mode,omitempty"`
	State string    `json:"state"`
	// Done are the steps that are done, UnderWay is a step that began and was not recorded as done, although it may be.
	// Left did not begin.
	Done     []StepResult `json:"done"`
	UnderWay *StepResult  `json:"underWay,omitempty"`
	// Untouched is true if the step under way failed before it changed anything.
	Untouched bool     `json:"untouched,omitempty"`
	Left      []string `json:"left"`
	// Members are those that the run has changed, with how to undo it.
	Members []MemberBack `json:"members"`
	// Look are the commands that show the state of the cluster, Files is what the run has written. Next are the
	// commands that continue instead.
	Look  []plan.Command `json:"look"`
	Files []string       `json:"files"`
	Next  []string       `json:"next"`
	// NextArgs are those of Next as lists.
	NextArgs []shell.Command `json:"nextArgs"`
}

// MemberBack is the state of one member, and what restores it.
type MemberBack struct {
	Name string `json:"name"`
	// State is its present state. Final is true when the state before cannot be restored.
	State string         `json:"state"`
	Final bool           `json:"final"`
	Back  []plan.Command `json:"back"`
}

// Abort says what a plan's newest run has done and what not, and how to undo it. It writes nothing, and refuses while a
// run is active.
func Abort(file string) (*WayBack, error) {
	p, err := plan.Load(file)
	if err != nil {
		return nil, err
	}
	st, err := Status(file)
	if err != nil {
		return nil, err
	}
	if st.AtWork {
		return nil, refusal.New("end it with ^C first: it stops at the step it is at, and this command says how to go "+
			"back from there", "a process is at work on this plan")
	}
	records, err := ReadJournal(file)
	if err != nil {
		return nil, err
	}
	b := &back{p: p, w: &WayBack{SchemaVersion: plan.SchemaVersion, Plan: p.Digest, State: "not begun",
		Done: []StepResult{},
		Left: []string{}, Members: []MemberBack{},
		Look: []plan.Command{}, Files: []string{}, Next: st.Next, NextArgs: st.NextArgs}}
	for _, r := range slices.Backward(st.Runs) {
		if r.Mode != rehearsal && !(r.State == stateGivenUp && len(r.Steps) == 0) {
			b.from(&r, records)
			break
		}
	}
	return b.w, nil
}

// back reads one run. values are the newest values of its journal. undone leaves out the step under way, as if it was
// not done.
type back struct {
	p      *plan.Plan
	w      *WayBack
	values map[string]string
	undone bool
}

func (b *back) from(r *Run, records []Record) {
	w := b.w
	w.Run, w.Mode, w.State, w.Left = r.Run, r.Mode, r.State, r.Left
	for i := range r.Steps {
		if s := r.Steps[i]; s.State == "done" {
			w.Done = append(w.Done, s)
		} else {
			w.UnderWay = &s
		}
	}
	b.values = map[string]string{}
	tries := 0 // those of the step under way that may have changed something
	for _, rec := range records {
		if rec.Run != r.Run {
			continue
		}
		maps.Copy(b.values, rec.Values)
		switch {
		case w.UnderWay == nil || rec.Step != w.UnderWay.ID:
		case rec.State == StateBegin:
			tries++
		case rec.Unchanged:
			tries--
		}
	}
	w.Untouched = w.UnderWay != nil && tries == 0
	b.undone = w.Untouched
	b.p = reached(b.p, b.values)
	for name, v := range b.values {
		_, gone := os.Lstat(v)
		if strings.HasPrefix(name, "file:") || (name == "out" || name == "work") && gone == nil {
			w.Files = append(w.Files, v)
		}
	}
	slices.Sort(w.Files)
	if r.Mode != plan.Live {
		return // copies only
	}
	best := b.p.Member(b.p.Best.Name)
	w.Look = append(b.p.EtcdctlAccess(best),
		plan.Typed("etcdctl", plan.Etcdctl(best).Then(shell.Format("member list -w table"))),
		plan.Typed("etcdctl", plan.Etcdctl(best).Then(shell.Format("endpoint status --cluster -w table"))))
	for i := range b.p.Members {
		if m := &b.p.Members[i]; b.touched(m) {
			w.Members = append(w.Members, b.eitherBack(m))
		}
	}
}

// reached is the plan with the client URLs that the run used.
func reached(p *plan.Plan, values map[string]string) *plan.Plan {
	out := *p
	out.Members = slices.Clone(p.Members)
	for i := range out.Members {
		if e := values["endpoint:"+out.Members[i].Name]; e != "" {
			out.Members[i].ClientURLs = []string{e}
		}
	}
	return &out
}

// has reports whether a step about a member is done, or under way and taken for done.
func (b *back) has(kind plan.StepKind, member string) bool {
	w := b.p.Way(plan.Live)
	for i := range w.Steps {
		s := &w.Steps[i]
		if s.Kind != kind || s.Member != member {
			continue
		}
		return slices.ContainsFunc(b.w.Done, func(d StepResult) bool { return d.ID == s.ID }) || !b.undone &&
			b.w.UnderWay != nil && b.w.UnderWay.ID == s.ID
	}
	return false
}

// isDone reports whether a step about a member is done.
func (b *back) isDone(kind plan.StepKind, member string) bool {
	return b.has(kind, member) && !(b.w.UnderWay != nil && slices.ContainsFunc(b.p.Way(plan.Live).Steps,
		func(s plan.Step) bool { return s.ID == b.w.UnderWay.ID && s.Kind == kind && s.Member == member }))
}

// votesAtOnce reports whether a member that joins votes as soon as it is added: servers of 3.3 know no learners.
func (b *back) votesAtOnce(m *plan.Member) bool { return m.Rejoins() && !b.p.Cluster.KnowsLearners() }

func (b *back) touched(m *plan.Member) bool {
	return slices.ContainsFunc([]plan.StepKind{plan.StepStart, plan.StepStop, plan.StepRemove, plan.StepSetAside,
		plan.StepAdd},
		func(k plan.StepKind) bool { return b.has(k, m.Name) })
}

// known fills in values from the journal.
func (b *back) known(m *plan.Member, cmds ...plan.Command) []plan.Command {
	values := map[string]string{}
	for word, name := range map[string]string{"DATA_DIR": "dir:", "NEW_MEMBER_ID": "id:",
		"INITIAL_CLUSTER": "initial:"} {
		if v := b.values[name+m.Name]; v != "" {
			values[word] = v
		}
	}
	var out []plan.Command
	for _, c := range cmds {
		if c.Args.IsZero() {
			c = c.FillNote(values) // another note says what INITIAL_CLUSTER is
			out = append(out, c)
			continue
		}
		out = append(out, c.Fill(values))
	}
	return out
}

// signs say how a person sees that a step is not done. They are about a member's name and old ID.
var signs = map[plan.StepKind]string{
	plan.StepStart:    "if %[1]s does not run, it was not done",
	plan.StepStop:     "if %[1]s runs, it was not done",
	plan.StepRemove:   "if member list shows the ID %[2]s, it was not done",
	plan.StepSetAside: "if the data dir of %[1]s is in its place, it was not done",
	plan.StepAdd:      "if member list does not show %[1]s under a new ID with its peer URLs, it was not done",
	plan.StepPromote:  "if member list shows %[1]s as a learner, it was not done",
}

// eitherBack is memberBack, for both outcomes of a step that began and of which the journal does not say whether it was
// done.
func (b *back) eitherBack(m *plan.Member) MemberBack {
	done := b.memberBack(m)
	i := slices.IndexFunc(b.p.Way(plan.Live).Steps, func(s plan.Step) bool {
		return b.w.UnderWay != nil && b.w.UnderWay.ID == s.ID && s.Member == m.Name && signs[s.Kind] != ""
	})
	if i < 0 || b.undone {
		return done
	}
	step := &b.p.Way(plan.Live).Steps[i]
	without := *b
	without.undone = true
	before := MemberBack{Name: m.Name, State: "as it was before this run"}
	if without.touched(m) {
		before = without.memberBack(m)
	}
	if before.State == done.State {
		return done
	}
	sign := fmt.Sprintf(signs[step.Kind], m.Name, m.ID)
	out := MemberBack{Name: m.Name, Final: before.Final && done.Final, Back: []plan.Command{}}
	out.State = fmt.Sprintf("step %s began, and it is not recorded whether it was done; %s. Not done: %s. Done: %s",
		step.ID, sign, before.State, done.State)
	for _, o := range []struct {
		when string
		back []plan.Command
	}{{sign, before.Back}, {"if it was done", done.Back}} {
		if len(o.back) > 0 {
			out.Back = append(append(out.Back, plan.Command{With: "note", Note: o.when + ":"}), o.back...)
		}
	}
	return out
}

// memberBack returns the state of a member, which the last step about it decides.
func (b *back) memberBack(m *plan.Member) MemberBack {
	mb := MemberBack{Name: m.Name, Back: []plan.Command{}}
	best := b.p.Member(b.p.Best.Name)
	id := b.values["id:"+m.Name]
	newID := id
	if newID == "" {
		newID = "NEW_MEMBER_ID"
	}
	undoAdd := b.known(m, append([]plan.Command{plan.Typed("etcdctl",
		plan.Etcdctl(best).Then(shell.Format("member remove <NEW_MEMBER_ID>")))}, plan.StepStop.ByHand(b.p, m)...)...)
	inList := m.Action != plan.Join && m.Action != plan.Retire
	switch {
	case b.has(plan.StepPromote, m.Name) && m.Action == plan.StandIn && !b.has(plan.StepRemove, m.For):
		mb.State = fmt.Sprintf("a voter with the content of %s; %s, whose place it is to take, still is a member",
			b.p.Best.Name, m.For)
		mb.Back = undoAdd
	case b.has(plan.StepPromote, m.Name), b.votesAtOnce(m) && b.isDone(plan.StepWait, m.Name):
		mb.State, mb.Final = fmt.Sprintf("a voter under its new ID %s, with the content of %s: nothing is left to do "+
			"for it", newID, b.p.Best.Name), true
	case b.has(plan.StepAdd, m.Name):
		mb.State = "added under the ID " + newID + ", not a voter yet"
		mb.Back = undoAdd
		if b.votesAtOnce(m) {
			mb.State = "added under the ID " + newID + ", and a voter from then on: of two voters it has to run " +
				"before the cluster can remove it again"
			mb.Back = b.known(m, append(plan.StepStartEmpty.ByHand(b.p, m), mb.Back...)...)
		}
		if mb.Final = m.Action != plan.StandIn; mb.Final && inList {
			mb.State += "; its old ID is gone for good, so that going back leaves the cluster with one voter fewer"
		}
	case b.has(plan.StepRemove, m.Name):
		mb.Final = true
		mb.State = fmt.Sprintf("removed: the ID %s never comes back, and no server may start on its old data dir again",
			m.ID)
		if m.Action == plan.Replace && m.Standby == "" {
			mb.State += "; the cluster has one voter fewer until it joins again, empty"
			for _, k := range []plan.StepKind{plan.StepStop, plan.StepSetAside} {
				if !b.isDone(k, m.Name) {
					mb.Back = append(mb.Back, k.ByHand(b.p, m)...)
				}
			}
			mb.Back = b.known(m, slices.Concat(mb.Back, plan.StepAdd.ByHand(b.p, m),
				plan.StepStartEmpty.ByHand(b.p, m), plan.StepPromote.ByHand(b.p, m))...)
		}
	case b.has(plan.StepSetAside, m.Name):
		mb.State = "stopped, its data dir is moved aside"
		mb.Back = b.known(m, append(b.p.PutBack(m), plan.StepStart.ByHand(b.p, m)...)...)
	case b.has(plan.StepStop, m.Name) && !b.startedAgain(m):
		mb.State = "stopped, and still a member"
		if !inList {
			mb.State = "stopped; it was no member of this cluster"
		}
		mb.Back = b.known(m, plan.StepStart.ByHand(b.p, m)...)
	default:
		mb.State = "started on its own data dir: that may stay"
		mb.Back = b.known(m, plan.StepStop.ByHand(b.p, m)...)
	}
	return mb
}

// startedAgain reports whether a member that was only restarted runs again.
func (b *back) startedAgain(m *plan.Member) bool {
	return m.RestartOn != "" && b.has(plan.StepStart, m.Name)
}
