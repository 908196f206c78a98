package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

// none is for a step without a command.
var none shell.Command

// needsOthers are the classes whose cure needs another member.
var needsOthers = map[check.Class]bool{check.ClassDataDivergence: true, check.ClassLatentDivergence: true,
	check.ClassMemberLostData: true,
	check.ClassWALDamage:      true, check.ClassSnapshotDamage: true, check.ClassDBDamage: true}

// advice lists what to do now.
type advice struct {
	*Input
	ranking *ranking
	Verdict Verdict
	Best    *Best
	Next    []Next
}

// next says what to do now. Every report ends with at least one step.
func (ad *advice) next() {
	add := func(text string, command shell.Command) {
		command = ad.Members.AtEndpoint(command)
		same := func(n Next) bool {
			return n.Command.Equal(command) && (n.Text == text || !command.IsZero())
		}
		if !slices.ContainsFunc(ad.Next, same) {
			ad.Next = append(ad.Next, Next{Text: text, Command: command})
		}
	}
	for _, s := range ad.Unread {
		add("make source "+s.Name+" readable and run again", none)
	}
	if len(ad.Members) == 1 && needsOthers[ad.Verdict.Class] {
		ad.nextAlone(add)
		return
	}
	if !ad.Mixed && ad.ranking.separateHistories().whyUnranked() != "" {
		ad.nextHistories(add)
		return
	}
	if ad.ranking.whyNotReplayed() != "" {
		add("stop writes to the cluster, keep the copied data dirs unchanged, and run again with more memory "+
			"(--max-memory): the log was not replayed on the databases", none)
		return
	}
	if wrong := ad.wrongOutside(); len(wrong) > 0 && needsOthers[ad.Verdict.Class] {
		ad.nextWrongOutside(wrong, add)
		return
	}
	switch ad.Verdict.Class {
	case check.ClassDataDivergence, check.ClassLatentDivergence:
		ad.nextDivergence(add)
	case check.ClassMemberLostData:
		ad.nextLostData(add)
	case check.ClassWALDamage, check.ClassSnapshotDamage, check.ClassDBDamage:
		ad.nextDamage(add)
	case check.ClassMembership:
		ad.nextMembership(add)
	case check.ClassForeignCluster:
		ad.nextForeign(add)
	case check.ClassTornCopy:
		ad.nextTorn(add)
	case check.ClassBackupDamaged:
		for _, s := range BackupNext() {
			add(s.Text, s.Command)
		}
	case check.ClassInconclusive:
		ad.nextInconclusive(add)
	default:
		ad.nextHealthy(add)
	}
	if ad.tooLarge() {
		ad.nextMoreMemory(add)
	}
}

// nextInconclusive says how each missing database is found, and what would decide.
func (ad *advice) nextInconclusive(add func(text string, command shell.Command)) {
	closed := ad.notPermitted()
	for i := range ad.Facts {
		f := &ad.Facts[i]
		if f.DB == nil && ad.kindOf(f.Name) == evidence.KindDataDir && !slices.Contains(closed, f.Name) {
			ad.nextMissingDB(f, add)
		}
	}
	ad.nextUndecided(add)
}

// nextMembership repairs the membership as the findings say.
func (ad *advice) nextMembership(add func(text string, command shell.Command)) {
	ad.nextRemedies(add)
	ad.nextPlan(add)
	add("see every conf change in the log", shell.Format("etcd-medic dumplog {} --entry-type ConfigChange", ad.first()))
}

// BackupNext is what to do about a damaged backup.
func BackupNext() []Next {
	return []Next{
		{Text: "do not rely on this file: fetch it again from where it was saved, or take a backup of another time, " +
			"and prove that one before a restore", Command: shell.Format("etcd-medic verify <OTHER>.db")},
		{Text: "take a new snapshot from a healthy member", Command: shell.Format("etcdctl snapshot save <NEW>.db")},
	}
}

func (in *Input) first() shell.Word { return shell.Source(in.Members[0].Label()) }

func (ad *advice) bestAndRest() (string, []string) {
	if ad.Best == nil || len(ad.Best.Members) == 0 {
		return "", nil
	}
	best := ad.Best.Members[0]
	good := map[string]bool{}
	for _, m := range ad.Best.Members {
		good[m] = true
	}
	var rest []string
	for _, row := range ad.Best.Ranking {
		if !good[row.Member] {
			rest = append(rest, row.Member)
		}
	}
	return best, rest
}

// nextAlone leaves out the steps that need other members and says which files to fetch next.
func (ad *advice) nextAlone(add func(text string, command shell.Command)) {
	if ad.nextMend(add) {
		ad.nextCause(add)
		return
	}
	add("keep this copy unchanged and copy the data dirs of the other members (each server stopped): one data dir is "+
		"not enough to tell which member is right",
		shell.Format("etcd-medic diagnose {} <OTHER_MEMBER...>", ad.first()))
	if ad.Best == nil || len(ad.Best.Members) == 0 {
		add("without other members, if nothing can be repaired: restore from the newest sound backup", none)
	}
	for _, f := range ad.Findings {
		if f.Check == check.C05 && len(f.Remedy) > 0 { // none for the database of another cluster
			add(f.Remedy[0].Text, f.Remedy[0].Command)
		}
	}
	ad.nextRebuild(add)
	ad.nextUpgrade(add)
}

// nextRebuild offers the database that results from the log when every entry takes effect once. It needs logs that
// reach back to the first entry and a member whose database lacks some of it, or contradicts it. Logs that part hold
// two histories, and no database has both.
func (ad *advice) nextRebuild(add func(text string, command shell.Command)) {
	if ad.Best != nil && (ad.Best.Lost.CommittedEntries > 0 || ad.bestContradictsLog()) && ad.logsAreWhole() &&
		len(ad.ranking.branches()) == 0 {
		add("the logs reach back to the first entry: this makes a backup in which every entry took effect once. A "+
			"new cluster restored from it loses none of them",
			ad.rebuildCommand())
	}
}

// bestContradictsLog reports whether keys of the best member below its compact revision are other ones than its log
// gives, and of one of them no database is known to hold the right one.
func (ad *advice) bestContradictsLog() bool {
	best, _ := ad.bestAndRest()
	if best == "" || !ad.Best.Lost.Mend.IsZero() && ad.Best.Lost.Records.Mendable == ad.Best.Lost.Records.Count {
		return false
	}
	return slices.ContainsFunc(ad.Findings, func(f check.Finding) bool {
		return f.Kind == check.KindBelowCompactionAgainstLog && slices.Contains(f.Members, best)
	})
}

// logsAreWhole reports whether the sources' logs, taken together, hold every entry of a cluster that began empty. What
// the backup of a restored cluster held is in no entry, and rebuild refuses such logs.
func (ad *advice) logsAreWhole() bool {
	rp := ad.Replay
	return rp != nil && rp.First == 1 && len(rp.Gaps) == 0 &&
		!slices.ContainsFunc(ad.Members, func(m *evidence.Member) bool {
			return m.HasWAL() && m.WAL.Summary.Start == dumplog.StartRestore
		})
}

func (ad *advice) rebuildCommand() shell.Command {
	cmd := shell.Format("etcd-medic rebuild")
	for _, m := range ad.Members {
		if m.HasWAL() {
			cmd = cmd.With("--log", shell.Source(m.Label()))
		}
	}
	return cmd.Then(shell.Format("--to last -o rebuilt.db"))
}

// nextUpgrade names the versions without the defect.
func (ad *advice) nextUpgrade(add func(text string, command shell.Command)) {
	for i := range ad.Causes {
		if fixes := ad.upgradesFor(&ad.Causes[i]); fixes != "" {
			add("upgrade every member past the defect ("+fixes+"), or it comes back at the next restart", none)
			return
		}
	}
}

// upgradesFor names the releases without the defect that the members can be upgraded to, "" if they all have the fix.
func (ad *advice) upgradesFor(k *Cause) string {
	var versions []release.Version
	for _, m := range ad.Members {
		versions = append(versions, m.Version.Release())
	}
	return release.Text(release.Upgrades(k.FixedIn, versions...))
}

func (ad *advice) nextDivergence(add func(text string, command shell.Command)) {
	best, rest := ad.bestAndRest()
	add("stop writes to the cluster; keep the copied data dirs unchanged", none)
	if best == "" {
		add("no member is usable in its current state: restore from the newest sound backup", none)
		return
	}
	if len(rest) == 0 {
		add(ad.chooseText("choose the one to keep and reseed the others from it"), none)
	}
	if n := ad.Best.Lost.CommittedEntries; n > 0 {
		what := plural.Of(n, "committed write", "committed writes")
		if ad.Best.Lost.AfterEnd+ad.Best.Lost.Parted > 0 {
			what = plural.Of(n, "committed entry", "committed entries")
		}
		add(fmt.Sprintf("save the %s that %s is missing before you reseed anything", what, ad.keptLabel(best)),
			ad.Best.Lost.Command)
		for _, c := range ad.Best.Lost.MoreCommands {
			add("save those that only this log holds, too", c)
		}
	}
	if n, proposers := ad.Best.Lost.Nowhere(ad.sourceNames()); n > 0 && len(proposers) > 0 {
		add(fmt.Sprintf("before you choose: no source's database holds %d of these entries; %s proposed them and is "+
			"not among the sources. Copy its data dir and diagnose again: it may be the better member",
			n, strings.Join(proposers, ", ")), none)
	}
	ad.nextRebuild(add)
	add("see which keys differ where", shell.Format("etcd-medic compare").Sources(ad.allLabels()...))
	ad.nextPlan(add)
	ad.nextUpgrade(add)
	add("run diagnose again on fresh copies: the repair is done when it says healthy",
		shell.Format("etcd-medic diagnose").Sources(ad.allLabels()...))
	ad.byHand(best, rest, true)
}

// nextMendRecords offers to bring the right records back into the member that is kept, before others get its content.
func (ad *advice) nextMendRecords(add func(text string, command shell.Command)) {
	best, _ := ad.bestAndRest()
	if best == "" || ad.Best.Lost.Mend.IsZero() {
		return
	}
	l := &ad.Best.Lost
	text := fmt.Sprintf("before anything is reseeded, mend %s: %s proven wrong, and other members hold the right %s. "+
		"Stop it, make a new data dir from its own, use that in its place and diagnose again", ad.keptLabel(best),
		plural.Of(l.Records.Count, "of its records is", "of its records are"),
		plural.Form(l.Records.Count, "one", "ones"))
	if n := l.Records.Count - l.Records.Mendable; n > 0 {
		text += fmt.Sprintf(". It brings back %d: of the other %d no database is known to hold the right one",
			l.Records.Mendable, n)
	}
	add(text, l.Mend)
}

// keptLabel returns the member whose loss is reported: the caller's choice, else the best.
func (ad *advice) keptLabel(best string) string {
	if slices.Contains(ad.allLabels(), ad.Keep) {
		return ad.Keep
	}
	return best
}

// nextPlan offers repair plan. Without a majority among the sources the plan needs the other data dirs, or the
// statement that they are lost. Nothing can be planned for a member that its cluster does not know.
func (ad *advice) nextPlan(add func(text string, command shell.Command)) {
	lost, known := ad.lostVoters()
	if !known {
		add("copy the data dirs of the members that the cluster has (each server stopped) and diagnose them together",
			none)
		return
	}
	ad.nextMendRecords(add)
	text := "write the repair plan: what is kept, what is lost and how to save it, each step with its undo"
	if ad.mustChoose() {
		text += ". " + ad.nameOneText()
	}
	if len(lost) > 0 {
		ad.nextGather()
		text += "; use it like this only if the others are permanently lost"
	}
	add(text, ad.planCommand(lost...))
	add("try it on scratch copies with real servers; the cluster is not touched",
		shell.Format("etcd-medic repair rehearse plan.yaml"))
}

// nextGather asks for the data dirs of the other members.
func (ad *advice) nextGather() {
	ad.Next = append(ad.Next, Next{Gathers: true,
		Text: "copy the data dirs of the other members too (each server stopped) and diagnose them together",
		Command: shell.Format("etcd-medic diagnose").Sources(ad.allLabels()...).
			Then(shell.Format("<OTHER_MEMBER...>"))})
}

// chooseText asks the operator to choose between members of which content prefers none.
func (ad *advice) chooseText(todo string) string {
	if ad.Best.Undecided != "" {
		return "nothing shows which member is right: look for what would, a log that reaches further back or a " +
			"backup, before you " + todo
	}
	return "the members are equally good: " + todo
}

// nameOneText asks for --best.
func (ad *advice) nameOneText() string {
	if ad.Best.Undecided != "" {
		return "Nothing shows which member is right: name the one to keep"
	}
	return "The members are equally good and hold different content: name the one to keep"
}

// planCommand is the command that plans the repair, without the members that are lost. It has a place for the member to
// keep where only the operator can choose.
func (ad *advice) planCommand(lost ...string) shell.Command {
	plan := shell.Format("etcd-medic repair plan").Sources(ad.allLabels()...)
	for _, name := range lost {
		plan = plan.With("--lost", name)
	}
	if ad.mustChoose() {
		plan = plan.Then(shell.Format("--best <MEMBER>"))
	}
	return plan.With("-o", "plan.yaml")
}

// mustChoose reports whether several data dirs are equally good and hold different content.
func (ad *advice) mustChoose() bool {
	if ad.Best == nil {
		return false
	}
	var dirs []string
	for _, label := range ad.Best.Members {
		if ad.kindOf(label) == evidence.KindDataDir {
			dirs = append(dirs, label)
		}
	}
	return !ad.Best.Interchangeable(dirs, func(label string) *evidence.Facts {
		at := slices.IndexFunc(ad.Facts, func(f evidence.Facts) bool { return f.Name == label })
		return &ad.Facts[max(at, 0)]
	})
}

// lostVoters are the voters that are not among the sources, by name or ID, if the sources are not a majority. known is
// false when no source is a member of the configuration that the sources know.
func (ad *advice) lostVoters() (lost []string, known bool) {
	var voters []dumplog.ID
	names := map[dumplog.ID]string{}
	here := map[dumplog.ID]bool{}
	newest := uint64(0)
	for _, m := range ad.Members {
		here[m.MemberID] = true
		if m.DB != nil {
			for i := range m.DB.Members {
				names[dumplog.ID(uint64(m.DB.Members[i].ID))] = m.DB.Members[i].Name
			}
		}
		if at := max(m.LastIndex(), 1); len(m.Membership.Voters) > 0 && at >= newest {
			voters, newest = m.Membership.Voters, at
		}
	}
	present := 0
	for _, id := range voters {
		if here[id] {
			present++
			continue
		}
		lost = append(lost, cmp.Or(names[id], id.String()))
	}
	if present > len(voters)/2 {
		lost = nil
	}
	return lost, present > 0 || len(voters) == 0
}

func (ad *advice) nextLostData(add func(text string, command shell.Command)) {
	best, rest := ad.bestAndRest()
	ad.nextPlan(add)
	add("a change of leader may let the member recover by a snapshot, but it may have voted twice: remove it and add "+
		"it again anyway", none)
	ad.byHand(best, rest, false)
}

func (ad *advice) nextDamage(add func(text string, command shell.Command)) {
	best, rest := ad.bestAndRest()
	if ad.nextMend(add) {
		ad.nextCause(add)
		return
	}
	if best == "" {
		if ad.logsAreWhole() {
			add("the logs reach back to the first entry: this makes a backup of all that they hold",
				ad.rebuildCommand())
		}
		add("if nothing can be repaired: restore from the newest sound backup", none)
		return
	}
	if len(rest) > 0 {
		ad.nextPlan(add)
	}
	ad.nextCause(add)
	ad.byHand(best, rest, false)
}

func (ad *advice) nextCause(add func(text string, command shell.Command)) {
	add("look for the cause below etcd: disk, controller, memory, a copy taken while the server ran", none)
}

func (in *Input) allLabels() []string {
	var out []string
	for _, m := range in.Members {
		out = append(out, m.Label())
	}
	return out
}

func (in *Input) idOf(label string) shell.Word {
	for _, m := range in.Members {
		if m.Label() == label && m.MemberID != 0 {
			return shell.Text(m.MemberID.String())
		}
	}
	return shell.ToFill("MEMBER_ID")
}
