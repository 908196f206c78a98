package plan

import (
	"fmt"
	"strings"

	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

// The steps of a running cluster: for each kind its text, and its commands.

func backupText(_ *builder, best *Member) Step {
	return Step{Title: "save a snapshot of " + best.Name,
		Precondition: best.Name + " serves", Effect: "a backup file with its sha256 trailer, verified; the cluster " +
			"is not changed",
		Undo: "none needed", Done: "the backup file is there and verifies"}
}

func backupByHand(_ *builder, best *Member) []Command {
	return []Command{
		Typed("etcdctl", Etcdctl(best).Then(shell.Format("snapshot save before-repair.db"))),
		Typed("etcd-medic", shell.Format("etcd-medic verify before-repair.db")),
	}
}

func saveText(b *builder, m *Member) Step {
	return Step{Title: "save a snapshot of " + m.Name + ", and list what only it has accepted since its data dir was " +
		"copied",
		Precondition: "none; a member that does not answer is skipped, because its data dir is moved aside as a whole",
		Effect: "a file with what " + m.Name + " holds, verified; the cluster is not changed. Writes that " +
			b.p.Best.Name + " lacks and the plan does not list stop the repair, unless they are accepted",
		Undo: "none needed", Done: "the file is there and verifies"}
}

func saveByHand(_ *builder, m *Member) []Command {
	file := shell.FileName(m.Name) + "-before-repair.db"
	return []Command{
		Typed("etcdctl", Etcdctl(m).Then(shell.Format("snapshot save {}", file))),
		Typed("etcd-medic", shell.Format("etcd-medic compare before-repair.db {}", file)),
	}
}

func startText(_ *builder, m *Member) Step {
	if m.RestartOn != "" {
		return Step{Title: "start " + m.Name + " again, on " + m.RestartOn,
			Precondition: "its server is " + m.RestartOn,
			Effect:       "its bucket members is mended when it starts", Undo: "none needed",
			Done: m.Name + " serves and knows a leader"}
	}
	why, effect := "so that a majority runs", m.Name+" votes and catches up from the log or by a snapshot"
	if m.Learner {
		why, effect = "where it catches up", m.Name+" catches up from the log or by a snapshot; it has no vote"
	}
	return Step{Title: "start " + m.Name + " on its own data dir, " + why,
		Precondition: "its data dir is sound and only lags", Effect: effect,
		Undo: "stop it again", Done: m.Name + " serves and knows a leader"}
}

func startByHand(_ *builder, m *Member) []Command {
	return []Command{
		OnHost(m, "systemd", startUnit),
		OnHost(m, "static-pod", startPod),
		Typed("etcdctl", Etcdctl(m).Then(statusTable)),
	}
}

func moveLeaderText(_ *builder, best *Member) Step {
	return Step{Title: "move the leader to " + best.Name,
		Precondition: best.Name + " is a voter and serves; a majority runs",
		Effect:       "new members are sent the content of " + best.Name + ", since snapshots come from the leader",
		Undo:         "move the leader back", Done: best.Name + " says that it leads"}
}

func moveLeaderByHand(_ *builder, best *Member) []Command {
	return []Command{
		Typed("etcdctl", Etcdctl(best).Then(shell.Format("endpoint status --cluster -w table"))),
		Typed("etcdctl", shell.Format("etcdctl --endpoints <CLIENT_URL_OF_THE_LEADER> move-leader {}", best.ID)),
	}
}

func advanceLogText(_ *builder, best *Member) Step {
	return Step{Title: "make " + best.Name + " drop the start of its in-memory raft log",
		Precondition: best.Name + " leads", Effect: "new members are sent the database, not the log replayed from " +
			"index 1; proposals without effect (alarm list) raise the raft index, not the revision",
		Undo: "none needed", Done: "the raft log in memory no longer starts at index 1: a raft snapshot was taken " +
			"(up to 3.5), or 100 entries were applied (from 3.6 on)"}
}

func advanceLogByHand(b *builder, best *Member) []Command {
	n := b.p.Cluster.Fillers()
	if n == 0 {
		return []Command{note("not needed: %s took a raft snapshot, so its log no longer starts at index 1", best.Name)}
	}
	loop := shell.Format("seq {} | while read -r i ; do",
		n).Then(Etcdctl(best)).Then(shell.Format("alarm list > /dev/null ; done"))
	out := []Command{Typed("etcdctl", loop)}
	if n > 1000 {
		out = append(out, note("quicker: restart %s once with a small --snapshot-count before the repair, and move "+
			"the leader to it again", best.Name))
	}
	return out
}

// Fillers returns how many proposals make a log with default settings drop its start: up to 3.5 that happens with a
// raft snapshot, every --snapshot-count (100,000) entries; from 3.6 on every 100 entries.
func (c *Cluster) Fillers() int {
	switch {
	case c.Has(release.LogTrimmedOften).Certain():
		return 110
	case c.LogStartsAtOne:
		return 100_010
	}
	return 0
}

func stopText(b *builder, m *Member) Step {
	return Step{Title: "stop " + m.Name,
		Precondition: fmt.Sprintf("%d of %d voters serve without it", b.up, max(b.voters, 1)),
		Effect:       "the process of " + m.Name + " has ended", Undo: "start it again",
		Done: m.Name + " does not answer"}
}

func stopByHand(_ *builder, m *Member) []Command {
	return []Command{
		OnHost(m, "systemd", stopUnit),
		OnHost(m, "static-pod", stopPod),
	}
}

func removeText(b *builder, m *Member) Step {
	return Step{Title: "remove " + m.Name + " from the member list",
		Precondition: b.p.Best.Name + " leads; a majority serves",
		Effect:       fmt.Sprintf("member %s is gone for good: the ID never comes back", m.ID),
		Undo:         "none: add it again, empty, with a new ID",
		Done:         fmt.Sprintf("the member list has no %s", m.ID)}
}

func removeByHand(b *builder, m *Member) []Command {
	return []Command{Typed("etcdctl", Etcdctl(b.best()).Then(shell.Format("member remove {}", m.ID)))}
}

func setAsideText(_ *builder, m *Member) Step {
	return Step{Title: "set the data dir of " + m.Name + " aside",
		Precondition: m.Name + " does not run",
		Effect:       "its data dir has another name next to the old place; nothing is deleted",
		Undo:         "rename it back",
		Done:         "the old place is empty"}
}

func setAsideByHand(b *builder, m *Member) []Command {
	aside := b.p.moveAside(m)
	return append([]Command{OnHost(m, "systemd", aside), OnHost(m, "static-pod", aside),
		note("where DATA_DIR is a mount point: mv -T DATA_DIR/member DATA_DIR/member.before-repair")},
		b.p.asideNote(m)...)
}

func addText(b *builder, m *Member) Step {
	title, with := "add "+m.Name+" as a learner", "a learner that does not vote yet"
	if !b.p.Cluster.KnowsLearners() {
		title, with = "add "+m.Name, "a voter (etcd 3.3 knows no learners): start it at once"
	}
	return Step{Title: title, Precondition: "all voters are connected; no other learner is there",
		Effect: "the member list has a new member with the peer URL " + strings.Join(m.PeerURLs, ",") + ", " + with,
		Undo:   "remove the new member", Done: "a member with that peer URL and another ID is listed"}
}

func addByHand(b *builder, m *Member) []Command {
	add := Etcdctl(b.best()).Then(shell.Format("member add"))
	if b.p.Cluster.KnowsLearners() {
		add = add.With("--learner")
	}
	// What follows the two dashes is a name, also when it looks like a flag.
	return []Command{Typed("etcdctl", add.Then(shell.Format("--peer-urls={} -- {}", strings.Join(m.PeerURLs, ","),
		m.ServerName())))}
}

func startEmptyText(b *builder, m *Member) Step {
	return Step{Title: "start " + m.Name + " with an empty data dir",
		Precondition: "its old data dir is set aside; the leader is " + b.p.Best.Name,
		Effect:       "it is sent the database of " + b.p.Best.Name, Undo: "stop it, remove the new member",
		Done: m.Name + " runs under its new ID"}
}

func startEmptyByHand(b *builder, m *Member) []Command {
	return []Command{
		note("INITIAL_CLUSTER is the line that member add printed: the members that %s lists now, and %s=%s",
			b.p.Best.Name, m.ServerName(), strings.Join(m.PeerURLs, ",")),
		note("set ETCD_INITIAL_CLUSTER_STATE=existing and ETCD_INITIAL_CLUSTER=\"INITIAL_CLUSTER\" in the unit's " +
			"environment, then:").on(m),
		OnHost(m, "systemd", startUnit),
		note("or set --initial-cluster-state=existing and --initial-cluster=INITIAL_CLUSTER in " +
			"/etc/kubernetes/etcd.yaml.aside, then:").on(m),
		OnHost(m, "static-pod", startPod),
	}
}

func waitText(b *builder, m *Member) Step {
	return Step{Title: "wait until " + m.Name + " holds what " + b.p.Best.Name + " holds",
		Precondition: m.Name + " runs",
		Effect:       "none; stops the repair when the contents differ", Undo: "none needed",
		Done: "its applied index and revision reached those of " + b.p.Best.Name +
			" and HashKV at one revision is equal"}
}

func waitByHand(b *builder, m *Member) []Command {
	return []Command{
		Typed("etcdctl", Etcdctl(m).Then(statusTable)),
		Typed("etcdctl", Etcdctl(b.best()).Then(hashTable)),
		note("if it does not serve within a minute, this, once a second, wakes it:"),
		Typed("etcdctl", Etcdctl(b.best()).Then(shell.Format("alarm list"))),
	}
}

func promoteText(b *builder, m *Member) Step {
	return Step{Title: "promote " + m.Name + " to a voter", Precondition: m.Name + " holds what " + b.p.Best.Name +
		" holds",
		Effect: "it votes and counts in the majority", Undo: "remove the member",
		Done: "the member list shows it as a voter, and a linearizable read through it works"}
}

func promoteByHand(b *builder, _ *Member) []Command {
	return []Command{Typed("etcdctl", Etcdctl(b.best()).Then(shell.Format("member promote <NEW_MEMBER_ID>")))}
}

func disarmText(*builder, *Member) Step {
	return Step{Title: "disarm the CORRUPT alarms", Precondition: "all members hold the same",
		Effect: "writes are accepted again",
		Undo:   "none", Done: "no CORRUPT alarm is listed"}
}

func disarmByHand(b *builder, _ *Member) []Command {
	out := []Command{Typed("etcdctl", Etcdctl(b.best()).Then(shell.Format("alarm disarm")))}
	if b.p.Cluster.raised("NOSPACE") {
		out = append(out, note("etcdctl disarms all alarms, NOSPACE too, which comes back with the next write unless "+
			"the database is compacted and defragmented first"))
	}
	return out
}

func verifyText(*builder, *Member) Step {
	return Step{Title: "prove that all members hold the same", Precondition: "all members serve",
		Effect: "none",
		Undo:   "none needed", Done: "HashKV is equal at one revision, reads and proposals work through each member, " +
			"no learner is left, no CORRUPT alarm is raised"}
}

func verifyByHand(b *builder, _ *Member) []Command {
	diagnose := shell.Format("etcd-medic diagnose")
	for i := range b.p.Members {
		if m := &b.p.Members[i]; m.Action != Remove && m.Action != Retire && m.Standby == "" {
			diagnose = diagnose.Then(shell.Format("{}={}", shell.FileName(m.Name), shell.FillFor("COPY_OF", m.Name)))
		}
	}
	return []Command{
		Typed("etcdctl", Etcdctl(b.best()).Then(hashTable)),
		Typed("etcdctl", Etcdctl(b.best()).Then(shell.Format("member list -w table"))),
		note("on fresh copies:"),
		Typed("etcd-medic", diagnose),
	}
}
