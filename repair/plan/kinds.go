package plan

import (
	"maps"
	"slices"
)

// StepKind is what a step does. The table kinds has its texts and commands; the table of package run has a row for each
// kind with the code that does it.
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

// kind has the text of one kind of step and the commands for doing it by hand. m is the member that the step is about;
// nil when it is about all of them.
type kind struct {
	text   func(b *builder, m *Member) Step
	byHand func(b *builder, m *Member) []Command
}

// kinds has a row for each kind of step.
var kinds = map[StepKind]kind{
	StepBackup:     {backupText, backupByHand},
	StepSave:       {saveText, saveByHand},
	StepStart:      {startText, startByHand},
	StepMoveLeader: {moveLeaderText, moveLeaderByHand},
	StepAdvanceLog: {advanceLogText, advanceLogByHand},
	StepStop:       {stopText, stopByHand},
	StepRemove:     {removeText, removeByHand},
	StepSetAside:   {setAsideText, setAsideByHand},
	StepAdd:        {addText, addByHand},
	StepStartEmpty: {startEmptyText, startEmptyByHand},
	StepWait:       {waitText, waitByHand},
	StepPromote:    {promoteText, promoteByHand},
	StepDisarm:     {disarmText, disarmByHand},
	StepVerify:     {verifyText, verifyByHand},
	StepForceNew:   {forceNewText, forceNewByHand},
	StepClone:      {cloneText, cloneByHand},
	StepProve:      {proveText, verifyByHand},
	StepHandOut:    {handOutText, handOutByHand},
	StepRestore:    {restoreText, restoreByHand},
	StepMend:       {mendText, mendByHand},
	StepRebuild:    {rebuildText, rebuildByHand},
}

// StepKinds are all kinds of steps.
func StepKinds() []StepKind { return slices.Sorted(maps.Keys(kinds)) }

// ByHand returns the commands for doing a step of that kind by hand, about m.
func (k StepKind) ByHand(p *Plan, m *Member) []Command { return kinds[k].byHand(&builder{p: p}, m) }

// add adds a step with its text and its commands.
func (b *builder) add(k StepKind, m *Member) {
	s := kinds[k].text(b, m)
	s.Kind, s.ByHand = k, b.withAccess(m, kinds[k].byHand(b, m))
	if m != nil {
		s.Member = m.Name
	}
	b.steps = append(b.steps, s)
}

// withAccess puts what etcdctl needs in front of the first commands of a procedure that call it.
func (b *builder) withAccess(m *Member, cmds []Command) []Command {
	if b.said || !slices.ContainsFunc(cmds, func(c Command) bool { return c.With == "etcdctl" }) {
		return cmds
	}
	if m == nil || len(m.ClientURLs) == 0 {
		m = b.best()
	}
	b.said = true
	return append(b.p.EtcdctlAccess(m), cmds...)
}
