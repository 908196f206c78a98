package plan

import (
	"fmt"
	"strings"

	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/shell"
)

// The steps of a cluster that is stopped: for each kind its text, and its commands.

func forceNewText(_ *builder, best *Member) Step {
	return Step{Title: "start " + best.Name + " alone with --force-new-cluster, then again without it",
		Precondition: "no other member runs; the data dir of " + best.Name + " is copied",
		Effect: "a cluster of one with the cluster ID, the member ID and the data of " + best.Name +
			"; entries that it does not know to be committed are dropped",
		Undo: "put the copy of its data dir back", Done: best.Name + " serves and is the only member"}
}

func forceNewByHand(b *builder, best *Member) []Command {
	return []Command{
		note("add --force-new-cluster to the flags of the unit, then:").on(best),
		OnHost(best, "systemd", startUnit),
		note("wait until it serves, remove the flag, then:").on(best),
		OnHost(best, "systemd", shell.Format("systemctl restart etcd")),
		note("or add --force-new-cluster to /etc/kubernetes/etcd.yaml.aside, then:").on(best),
		OnHost(best, "static-pod", startPod),
		note("wait until it serves, and remove the flag from /etc/kubernetes/manifests/etcd.yaml").on(best),
		Typed("etcdctl", Etcdctl(best).Then(shell.Format("member list -w table"))),
		note("where clients watch: do not add the other members; save a snapshot instead, stop the member, and " +
			"restore all members from the snapshot:"),
		Typed("etcdctl", Etcdctl(best).Then(shell.Format("snapshot save forced.db"))),
		Typed("etcd-medic", shell.Format("etcd-medic restore forced.db -o <OUT> --initial-cluster <MEMBERS> "+
			"--bump-revision {} --mark-compacted", b.p.bumpRevision())),
	}
}

func cloneText(b *builder, best *Member) Step {
	return Step{Title: "write new data dirs for " + strings.Join(MemberNames(b.p.CloneTargets()), ", ") +
		" from the database of " + best.Name,
		Precondition: "the sources are unchanged; the output folder is empty and has room",
		Effect: "OUT/NAME for every member: its own member ID, the cluster ID, one term, one index, the same " +
			"database",
		Undo: "remove OUT", Done: "every OUT/NAME is complete (it gets its name when it is flushed to disk)"}
}

func cloneByHand(*builder, *Member) []Command {
	return []Command{note("there is no etcd tool that keeps the IDs; by hand use etcdutl snapshot restore, " +
		"which begins a new cluster")}
}

// proveText says what copies of new data dirs have to show, which depends on the step that made them.
func proveText(b *builder, _ *Member) Step {
	s := Step{Title: "start copies of the new data dirs in a sandbox and compare",
		Precondition: "a server that opens them is at hand",
		Effect:       "none on the new data dirs", Undo: "none needed",
		Done: "all members serve, hold the same, and lack nothing that " + b.p.Best.Name + " held"}
	switch b.way {
	case MendFiles:
		s.Title = "start copies of the mended data dirs in a sandbox and compare"
		s.Effect = "none on the mended data dirs"
		s.Done = "servers start on copies of " + strings.Join(namesOf(b.p.ToMend()), ", ") + ", each holds what the " +
			"plan says, and diagnose finds nothing wrong with them"
	case Rebuild:
		s.Done = "all members serve and hold what the plan says"
	}
	return s
}

// CopyOut is the note that comes before the new data dirs are put in place.
const CopyOut = "first copy OUT to every host, under the same path"

// handOutText is for a step that people do: the tool changes nothing on hosts without a hook.
func handOutText(b *builder, _ *Member) Step {
	if b.way == MendFiles {
		return Step{Title: "put the mended data dirs in place and start their members",
			Precondition: "the members that were mended do not run, and have not run since their data dirs were copied",
			Effect: "they run on the mended data dirs under their old IDs, and catch up; the old data dirs are kept " +
				"under another name", Undo: "stop them, put the old data dirs back",
			Done: "all members serve, and etcd-medic diagnose says healthy on fresh copies"}
	}
	return Step{Title: "put the new data dirs in place", Precondition: "all members are stopped",
		Effect: "all members run on the new data dirs; all are replaced together, never one alone",
		Undo:   "stop all, put the old data dirs back",
		Done:   "etcd-medic diagnose says healthy on fresh copies"}
}

func handOutByHand(b *builder, _ *Member) []Command {
	if b.way == MendFiles {
		return b.mendedByHand(b.p.ToMend())
	}
	out, reseed := []Command{note(CopyOut)}, b.way == Reseed
	var placed []*Member
	for i := range b.p.Members {
		m := &b.p.Members[i]
		if m.Action == Retire && !m.Untouched() {
			out = append(out, note("stop etcd for good and set its data dir aside: %s", m.Why).on(m))
		}
		switch {
		case m.Action == Remove || m.Action == Retire:
		case m.Standby != "" && reseed:
			out = append(out, note("stop etcd for good and set its data dir aside: %s takes its place",
				m.Standby).on(m))
		case m.Action == StandIn && !reseed:
		case m.Action == StandIn:
			out = append(out, note("its data dir is new; then give it to the user that runs etcd:").on(m),
				OnHost(m, "systemd", shell.Format("cp -aT <OUT>/{} <DATA_DIR>", m.Folder())))
			placed = append(placed, m)
		default:
			out, placed = append(out, b.inPlace(m)...), append(placed, m)
		}
	}
	out = append(out, b.p.inPlaceNote(placed)...)
	return append(out, note("when every data dir is in place, and not before, on every host:"),
		Typed("systemd", startUnit), Typed("static-pod", startPod))
}

// mendedByHand puts mended data dirs in place of the old ones, each on its own host. No other member is touched.
func (b *builder) mendedByHand(members []*Member) []Command {
	out := []Command{note(CopyOut)}
	for _, m := range members {
		out = append(out, b.inPlace(m)...)
	}
	out = append(out, b.p.inPlaceNote(members)...)
	out = append(out, note("where the files were mended by hand on the host itself, DATA_DIR.mended is the new data "+
		"dir"))
	for _, m := range members {
		out = append(out, startByHand(nil, m)...)
	}
	return out
}

// inPlace stops a member and puts its new data dir in the place of the old one.
func (b *builder) inPlace(m *Member) []Command {
	place := b.p.moveAside(m).Then(shell.Format("&& cp -aT <OUT>/{} <DATA_DIR> && chown -R "+
		"--reference=<DATA_DIR>.before-repair <DATA_DIR>", m.Folder())).Then(b.p.logInPlace(m))
	return []Command{OnHost(m, "systemd", stopUnit.Then(shell.Format("&&")).Then(place)),
		OnHost(m, "static-pod", stopPod.Then(shell.Format(";")).Then(place))}
}

func restoreText(b *builder, _ *Member) Step {
	return Step{Title: "restore every member from " + b.from,
		Precondition: "all members are stopped, their data dirs set aside; the backup verifies",
		Effect:       "a new cluster with the content of the backup", Undo: "put the old data dirs back",
		Done: "etcd-medic diagnose says healthy on fresh copies"}
}

func restoreByHand(b *builder, _ *Member) (out []Command) {
	members, known := b.restored(), true
	var initial []string
	for _, m := range members {
		for _, u := range m.PeerURLs {
			initial = append(initial, m.ServerName()+"="+u)
		}
		known = known && len(m.PeerURLs) > 0
	}
	cluster := shell.ToFill("INITIAL_CLUSTER")
	if known = known && len(members) > 0; known {
		cluster = shell.Text(strings.Join(initial, ","))
	}
	if b.from == rebuiltFile {
		out = append(out, b.p.Rebuilt.command())
	}
	restore := shell.Format("etcd-medic restore {} -o <OUT>", b.backup)
	if b.listed == nil || !known || b.asListed(members) {
		out = append(out, note("of all members that the backup lists; --initial-cluster names others:"))
	} else {
		out = append(out, note("the backup lists other members, so these are named:"))
		restore = restore.With("--initial-cluster", cluster)
	}
	if b.bare {
		restore = restore.With("--accept-unproven-content")
	}
	out = append(out, Typed("etcd-medic", restore), note("or, on each host:"))
	for _, m := range members {
		out = append(out, OnHost(m, "etcdutl", b.restoreOne(m, cluster)))
	}
	if b.bare {
		out = append(out, note("%s has no sha256 at its end, so nothing proves that it is whole: the flags accept that",
			b.from))
	}
	return out
}

// restoreOne is etcd's own command that restores one member.
func (b *builder) restoreOne(m *Member, cluster shell.Word) shell.Command {
	peers := shell.ToFill("PEER_URL")
	if len(m.PeerURLs) > 0 {
		peers = shell.Text(strings.Join(m.PeerURLs, ","))
	}
	out := shell.Format("etcdutl snapshot restore {} --name {} --data-dir <DATA_DIR> --initial-cluster {} "+
		"--initial-advertise-peer-urls {} --initial-cluster-token <NEW_TOKEN>", b.backup, m.ServerName(), cluster,
		peers)
	if b.bare {
		out = out.With("--skip-hash-check")
	}
	if b.p.logApart(m.Source) != nil {
		out = out.Then(shell.Format("--wal-dir <WAL_DIR>"))
	}
	return out
}

func mendText(b *builder, m *Member) Step {
	x := b.p.MendOf(m.Source)
	return Step{Title: fmt.Sprintf("mend the %s of %s %s", x.parts(), m.Name, x.from()),
		Precondition: m.Name + " does not run",
		Effect: fmt.Sprintf("a new data dir with the same member ID, OUT/%s: %s. The old one is only read", m.Folder(),
			x.Why), Undo: "remove OUT/" + m.Folder(),
		Done: fmt.Sprintf("OUT/%s is complete; its log ends with entry %d, its database is at revision %d",
			m.Folder(), x.Promise.LastIndex, x.Promise.Revision)}
}

func mendByHand(b *builder, m *Member) []Command {
	return append(stopByHand(b, m), b.p.MendOf(m.Source).commands(m, b.p.logApart(m.Source) != nil)...)
}

func rebuildText(b *builder, _ *Member) Step {
	x := b.p.Rebuilt
	return Step{Title: "rebuild the database from " + x.from() + ", and write new data dirs with it",
		Precondition: "the sources are unchanged; the output folder is empty and has room",
		Effect: fmt.Sprintf("OUT/NAME for every member: its own member ID, the cluster ID, the database after "+
			"entry %d: revision %d, %s", x.Index, x.Promise.Revision, plural.Of(int(x.Keys), "key", "keys")),
		Undo: "remove OUT", Done: "every OUT/NAME is complete (it gets its name when it is flushed to disk)"}
}

func rebuildByHand(b *builder, _ *Member) []Command {
	return []Command{b.p.Rebuilt.command(), note("there is no etcd tool that keeps the IDs; by hand restore all " +
		"members from " + rebuiltFile + ", which begins a new cluster")}
}
