package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/shell"
)

// StepKind is what a step does; each has one row in the table of the executor.
type StepKind string

// The kinds of steps.
const (
	StepBackup     StepKind = "backup"
	StepSave       StepKind = "save"
	StepStart      StepKind = "start"
	StepMoveLeader StepKind = "move-leader"
	StepAdvanceLog StepKind = "advance-log"
	StepStop       StepKind = "stop"
	StepRemove     StepKind = "remove"
	StepSetAside   StepKind = "set-aside"
	StepAdd        StepKind = "add-learner"
	StepStartEmpty StepKind = "start-empty"
	StepWait       StepKind = "wait"
	StepPromote    StepKind = "promote"
	StepDisarm     StepKind = "disarm"
	StepVerify     StepKind = "verify"
	StepForceNew   StepKind = "force-new"
	StepClone      StepKind = "clone"
	StepProve      StepKind = "prove"
	StepHandOut    StepKind = "hand-out"
	StepRestore    StepKind = "restore"
	StepMend       StepKind = "mend"
	StepRebuild    StepKind = "rebuild"
)

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

// builder makes the steps of one way. voters and up follow the configuration as the steps change it.
type builder struct {
	p          *Plan
	voters, up int
	steps      []Step
}

func (b *builder) add(s Step) { b.steps = append(b.steps, s) }

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
	b.each(b.start, Start)
	b.backup()
	b.each(b.retire, Retire)
	rejoin := b.rejoining()
	if b.p.Cluster.Voters > 1 {
		b.moveLeader()
	}
	b.each(b.restart, Restart, Best)
	if len(rejoin) > 0 { // while all voters are there
		b.advanceLog()
	}
	b.each(func(m *Member) {
		if b.p.Removable(m) {
			b.save(m)
			b.remove(m)
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
			b.stop(m)
			b.setAside(m)
		case m.Startable:
			b.save(m)
			b.up--
			b.takeOut(m)
		}
		b.bringIn(m)
	}
	b.disarm()
	b.verify()
	return b.steps
}

// force is the way without a majority.
func (b *builder) force() []Step {
	for i := range b.p.Members {
		if m := &b.p.Members[i]; m.Action != Remove && m.Obstacle != ObstacleNameTaken &&
			(m.Source != "" || m.Action == Replace) {
			b.stop(m)
		}
	}
	b.forceNew()
	others := b.others()
	if len(others) > 0 {
		b.advanceLog()
	}
	for _, m := range others {
		b.setAside(m)
		b.bringIn(m)
	}
	b.disarm()
	b.verify()
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
	b.stop(m)
	b.setAside(m)
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
		b.stop(m)
		b.remove(m)
	} else {
		b.remove(m)
		b.stop(m)
	}
	b.voters--
	b.setAside(m)
}

func (b *builder) bringIn(m *Member) {
	b.addLearner(m)
	b.startEmpty(m)
	b.wait(m)
	if b.p.Cluster.KnowsLearners() {
		b.promote(m)
	}
	b.voters++
	b.up++
}

func (b *builder) best() *Member { return b.p.Member(b.p.Best.Name) }

func (b *builder) backup() {
	best := b.best()
	b.add(Step{Kind: StepBackup, Member: best.Name, Title: "save a snapshot of " + best.Name,
		Precondition: best.Name + " serves", Effect: "a backup file with its sha256 trailer, verified; the cluster " +
			"is not changed",
		Undo: "none needed", Done: "the backup file is there and verifies", ByHand: byHandBackup(best)})
}

// save comes right before a member is taken out: it goes on acknowledging writes until it is stopped, and no other
// member may hold them.
func (b *builder) save(m *Member) {
	if m.Zombie() || m.Source == "" && len(m.ClientURLs) == 0 {
		return // nothing runs that could be asked
	}
	b.add(Step{Kind: StepSave, Member: m.Name, Title: "save a snapshot of " + m.Name +
		", and see what it alone took in since its data dir was copied",
		Precondition: "none; a member that does not answer is passed over, its data dir is set aside whole",
		Effect: "a file with what " + m.Name + " holds, verified; the cluster is not changed. Writes that " +
			b.p.Best.Name + " lacks and the plan does not list stop the repair, unless they are accepted",
		Undo: "none needed", Done: "the file is there and verifies", ByHand: byHandSave(m)})
}

func (b *builder) start(m *Member) {
	why, effect := "so that a majority runs", m.Name+" votes and catches up from the log or by a snapshot"
	if m.Learner {
		why, effect = "where it catches up", m.Name+" catches up from the log or by a snapshot; it has no vote"
	}
	b.add(Step{Kind: StepStart, Member: m.Name, Title: "start " + m.Name + " on its own data dir, " + why,
		Precondition: "its data dir is sound and only lags", Effect: effect,
		Undo: "stop it again", Done: m.Name + " serves and knows a leader", ByHand: ByHandStart(m)})
}

func (b *builder) moveLeader() {
	best := b.best()
	b.add(Step{Kind: StepMoveLeader, Member: best.Name, Title: "move the leader to " + best.Name,
		Precondition: best.Name + " is a voter and serves; a majority runs",
		Effect:       "new members are sent the content of " + best.Name + ", since snapshots come from the leader",
		Undo:         "move the leader back", Done: best.Name + " says that it leads", ByHand: byHandMoveLeader(best)})
}

func (b *builder) advanceLog() {
	best := b.best()
	b.add(Step{Kind: StepAdvanceLog, Member: best.Name, Title: "make " + best.Name +
		" drop the start of its in-memory raft log",
		Precondition: best.Name + " leads", Effect: "new members are sent the database, not the log replayed from " +
			"index 1; proposals without effect (alarm list) raise the raft index, not the revision",
		Undo: "none needed", Done: "the raft log in memory starts behind index 1: a raft snapshot was taken (up to " +
			"3.5), or 100 entries were applied (from 3.6 on)", ByHand: byHandAdvance(best, &b.p.Cluster)})
}

func (b *builder) stop(m *Member) {
	b.add(Step{Kind: StepStop, Member: m.Name, Title: "stop " + m.Name,
		Precondition: fmt.Sprintf("%d of %d voters serve without it", b.up, max(b.voters, 1)),
		Effect:       "the process of " + m.Name + " has ended", Undo: "start it again",
		Done:   m.Name + " does not answer",
		ByHand: ByHandStop(m)})
}

func (b *builder) remove(m *Member) {
	s := Step{Kind: StepRemove, Member: m.Name, Title: "remove " + m.Name + " from the member list",
		Precondition: b.p.Best.Name + " leads; a majority serves",
		Effect:       fmt.Sprintf("member %s is gone for good: the ID never comes back", m.ID),
		Undo:         "none: add it again, empty, with a new ID",
		Done:         fmt.Sprintf("the member list has no %s", m.ID), ByHand: byHandRemove(b.best(), m)}
	b.add(s)
}

func (b *builder) setAside(m *Member) {
	b.add(Step{Kind: StepSetAside, Member: m.Name, Title: "set the data dir of " + m.Name + " aside",
		Precondition: m.Name + " does not run",
		Effect:       "its data dir stands under another name beside the old place; nothing is deleted",
		Undo:         "rename it back",
		Done:         "the old place is empty", ByHand: ByHandSetAside(m)})
}

func (b *builder) addLearner(m *Member) {
	title, with := "add "+m.Name+" as a learner", "a learner that does not vote yet"
	if !b.p.Cluster.KnowsLearners() {
		title, with = "add "+m.Name, "a voter (etcd 3.3 knows no learners): start it at once"
	}
	b.add(Step{Kind: StepAdd, Member: m.Name, Title: title, Precondition: "all voters are connected; no other " +
		"learner is there",
		Effect: "the member list has a new member with the peer URL " + strings.Join(m.PeerURLs, ",") + ", " + with,
		Undo:   "remove the new member", Done: "a member with that peer URL and another ID is listed",
		ByHand: ByHandAdd(b.best(), m, b.p.Cluster.KnowsLearners())})
}

func (b *builder) startEmpty(m *Member) {
	b.add(Step{Kind: StepStartEmpty, Member: m.Name, Title: "start " + m.Name + " with an empty data dir",
		Precondition: "its old data dir is set aside; the leader is " + b.p.Best.Name,
		Effect:       "it is sent the database of " + b.p.Best.Name, Undo: "stop it, remove the new member",
		Done: m.Name + " runs under its new ID", ByHand: ByHandStartEmpty(b.p, m)})
}

func (b *builder) wait(m *Member) {
	b.add(Step{Kind: StepWait, Member: m.Name, Title: "wait until " + m.Name + " holds what " + b.p.Best.Name +
		" holds", Precondition: m.Name + " runs",
		Effect: "none; stops the repair when the contents differ", Undo: "none needed",
		Done: "its applied index and revision reached those of " + b.p.Best.Name +
			" and HashKV at one revision is equal", ByHand: byHandWait(b.best(), m)})
}

func (b *builder) promote(m *Member) {
	b.add(Step{Kind: StepPromote, Member: m.Name, Title: "promote " + m.Name + " to a voter", Precondition: m.Name +
		" holds what " + b.p.Best.Name + " holds",
		Effect: "it votes and counts in the majority", Undo: "remove the member",
		Done:   "the member list shows it as a voter, and a linearizable read through it works",
		ByHand: ByHandPromote(b.best())})
}

func (b *builder) disarm() {
	if len(b.p.Cluster.Alarms) == 0 {
		return
	}
	b.add(Step{Kind: StepDisarm, Title: "disarm the CORRUPT alarms", Precondition: "all members hold the same",
		Effect: "writes are accepted again",
		Undo:   "none", Done: "no CORRUPT alarm is listed",
		ByHand: []Command{Typed("etcdctl", Etcdctl(b.best()).Then(shell.Format("alarm disarm")))}})
}

func (b *builder) verify() {
	b.add(Step{Kind: StepVerify, Title: "prove that all members hold the same", Precondition: "all members serve",
		Effect: "none",
		Undo:   "none needed", Done: "HashKV is equal at one revision, reads and proposals work through each member, " +
			"no learner is left, no CORRUPT alarm is raised", ByHand: byHandVerify(b.p)})
}
