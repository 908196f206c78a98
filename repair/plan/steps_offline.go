package plan

import (
	"strings"

	"github.com/etcd-medic/etcd-medic/shell"
)

func (b *builder) forceNew() {
	best := b.best()
	b.add(Step{Kind: StepForceNew, Member: best.Name, Title: "start " + best.Name +
		" alone with --force-new-cluster, then again without it",
		Precondition: "no other member runs; the data dir of " + best.Name + " is copied",
		Effect: "a cluster of one with the cluster ID, the member ID and the data of " + best.Name +
			"; entries that it does not know to be committed are dropped",
		Undo: "put the copy of its data dir back", Done: best.Name + " serves and is the only member",
		ByHand: []Command{
			note("add --force-new-cluster to the flags of the unit, then:").on(best),
			OnHost(best, "systemd", startUnit),
			note("wait until it serves, remove the flag, then:").on(best),
			OnHost(best, "systemd", shell.Format("systemctl restart etcd")),
			note("or add --force-new-cluster to /etc/kubernetes/etcd.yaml.aside, then:").on(best),
			OnHost(best, "static-pod", startPod),
			note("wait until it serves, and remove the flag from /etc/kubernetes/manifests/etcd.yaml").on(best),
			Typed("etcdctl", Etcdctl(best).Then(shell.Format("member list -w table"))),
		}})
	last := &b.steps[len(b.steps)-1]
	last.ByHand = append(last.ByHand, note("where clients watch: do not add the other members; save a snapshot "+
		"instead, stop the member, and restore all members from the snapshot:"),
		Typed("etcdctl", Etcdctl(best).Then(shell.Format("snapshot save forced.db"))),
		Typed("etcd-medic", shell.Format("etcd-medic restore forced.db -o <OUT> --initial-cluster <MEMBERS> "+
			"--bump-revision {} --mark-compacted", b.p.bumpRevision())))
}

func (b *builder) clone() []Step {
	best := b.best()
	names := MemberNames(b.p.CloneTargets())
	b.add(Step{Kind: StepClone, Member: best.Name, Title: "write new data dirs for " + strings.Join(names, ", ") +
		" from the database of " + best.Name,
		Precondition: "the sources are unchanged; the output folder is empty and has room",
		Effect:       "OUT/NAME for every member: its own member ID, the cluster ID, one term, one index, the same database",
		Undo:         "remove OUT", Done: "every OUT/NAME is complete (it gets its name when it is flushed to disk)",
		ByHand: []Command{note("there is no etcd tool that keeps the IDs; by hand use etcdutl snapshot restore, " +
			"which begins a new cluster")}})
	b.add(Step{Kind: StepProve, Title: "start copies of the new data dirs in a sandbox and compare",
		Precondition: "a server that opens them is at hand",
		Effect:       "none on the new data dirs", Undo: "none needed",
		Done: "all members serve, hold the same, and lack " +
			"nothing that " + best.Name + " held", ByHand: byHandVerify(b.p)})
	b.install(false)
	// A clone keeps the configuration as it is; what should not be in it is removed once a majority runs.
	b.each(func(m *Member) {
		if !m.Zombie() { // no clone has its row
			b.remove(m)
		}
	}, Remove)
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

func (b *builder) publishDataDirs() []Step {
	b.install(true)
	return b.steps
}

// CopyOut is the note that comes before the new data dirs are put in place.
const CopyOut = "first copy OUT to every host, under the same path"

// install is always done by people: the tool does not reach into hosts that no hook names.
func (b *builder) install(reseed bool) {
	s := Step{Kind: StepHandOut, Title: "put the new data dirs in place", Precondition: "all members are stopped",
		Effect: "all members run on the new data dirs; all are replaced together, never one alone",
		Undo:   "stop all, put the old data dirs back",
		Done:   "etcd-medic diagnose says healthy on fresh copies"}
	s.ByHand = []Command{note(CopyOut)}
	for i := range b.p.Members {
		m := &b.p.Members[i]
		if m.Action == Retire && m.Obstacle != ObstacleNameTaken {
			s.ByHand = append(s.ByHand, note("stop etcd for good and set its data dir aside: %s", m.Why).on(m))
		}
		switch {
		case m.Action == Remove || m.Action == Retire:
			continue
		case m.Standby != "" && reseed:
			s.ByHand = append(s.ByHand, note("stop etcd for good and set its data dir aside: %s takes its place",
				m.Standby).on(m))
			continue
		case m.Action == StandIn && !reseed:
			continue
		case m.Action == StandIn:
			s.ByHand = append(s.ByHand, note("its data dir is new; then give it to the user that runs etcd:").on(m),
				OnHost(m, "systemd", shell.Format("cp -aT <OUT>/{} <DATA_DIR>", m.Folder())))
			continue
		}
		place := setAside.Then(shell.Format("&& cp -aT <OUT>/{} <DATA_DIR> && chown -R "+
			"--reference=<DATA_DIR>.before-repair <DATA_DIR>", m.Folder()))
		s.ByHand = append(s.ByHand, OnHost(m, "systemd", stopUnit.Then(shell.Format("&&")).Then(place)),
			OnHost(m, "static-pod", stopPod.Then(shell.Format(";")).Then(place)))
	}
	s.ByHand = append(s.ByHand, note("when every data dir is in place, and not before, on every host:"),
		Typed("systemd", startUnit), Typed("static-pod", startPod))
	b.add(s)
}

func (b *builder) restore(from string) []Step {
	s := Step{Kind: StepRestore, Title: "restore every member from " + from,
		Precondition: "all members are stopped, their data dirs set aside; the backup verifies",
		Effect:       "a new cluster with the content of the backup", Undo: "put the old data dirs back",
		Done: "etcd-medic diagnose says healthy on fresh copies"}
	var initial []string
	for i := range b.p.Members {
		if m := &b.p.Members[i]; len(m.PeerURLs) > 0 {
			initial = append(initial, m.ServerName()+"="+m.PeerURLs[0])
		}
	}
	for i := range b.p.Members {
		m := &b.p.Members[i]
		peer := shell.ToFill("PEER_URL")
		if len(m.PeerURLs) > 0 {
			peer = shell.Text(m.PeerURLs[0])
		}
		s.ByHand = append(s.ByHand, OnHost(m, "etcdutl", shell.Format(
			"etcdutl snapshot restore {} --name {} --data-dir <DATA_DIR> --initial-cluster {} "+
				"--initial-advertise-peer-urls {} --initial-cluster-token <NEW_TOKEN>",
			from, m.ServerName(), strings.Join(initial, ","), peer)))
	}
	b.add(s)
	return b.steps
}
