package verdict

import (
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

// hands writes the procedure that reseeds members without this program: every command, in order, one member at a time.
type hands struct {
	best *evidence.Facts
	j    *advice
}

// byHand adds that procedure, separate from the other steps. move is true when the best member has to become the leader
// first. Backups, and what is of removed members, are left out; a member that only lags catches up when it runs.
func (ad *advice) byHand(best string, rest []string, move bool) {
	i := slices.IndexFunc(ad.Facts, func(f evidence.Facts) bool { return f.Name == best })
	rest = slices.DeleteFunc(slices.Clone(rest), ad.isOutside)
	if i < 0 || len(rest) == 0 {
		return
	}
	if ad.Best != nil && ad.Best.Lost.FromLogs { // a plan adds the entries of the logs to its database first
		return
	}
	h := hands{&ad.Facts[i], ad}
	lagging := slices.DeleteFunc(slices.Clone(rest), func(name string) bool { return !ad.onlyLags(name) })
	rest = slices.DeleteFunc(rest, ad.onlyLags)
	if move && len(rest) > 0 {
		h.add("make "+best+" the leader: its content is kept",
			shell.Format("etcdctl --endpoints <CLIENT_URL_OF_THE_LEADER>").
				Then(h.login()).Then(shell.Format("move-leader {}", ad.idOf(best))))
	}
	for _, name := range lagging { // after the leader, which may send it a snapshot
		h.addFor(name, "see that its server runs: it lags and catches up", none)
	}
	for _, name := range rest {
		h.reseed(name, ad.idOf(name), ad.Members[slices.Index(ad.allLabels(), name)].MemberID)
	}
	if len(h.best.Alarms) > 0 {
		h.add("when all members are back and what raised the alarm is gone",
			h.etcdctl().Then(shell.Format("alarm disarm")))
	}
	h.add("prove that all members hold the same data",
		h.etcdctl().Then(shell.Format("endpoint hashkv --cluster -w table")))
}

// onlyLags reports whether a member holds all that its log gives up to where it ends, and no error names it.
func (ad *advice) onlyLags(label string) bool {
	if ad.Best == nil {
		return false
	}
	at := slices.IndexFunc(ad.Best.Ranking, func(r Rank) bool { return r.Member == label })
	if at < 0 {
		return false
	}
	r := &ad.Best.Ranking[at]
	return r.Usable && r.HoldsAll && r.Behind > 0 && !slices.ContainsFunc(ad.Findings, func(f check.Finding) bool {
		return f.Severity.Rank() >= check.Error.Rank() && slices.Contains(f.Members, label)
	})
}

func (h *hands) add(text string, command shell.Command) {
	h.j.Next = append(h.j.Next, Next{Text: text, Command: command, ByHand: true})
}

// addFor adds a step about one member.
func (h *hands) addFor(member, text string, command shell.Command) {
	h.add(member+": "+text, command)
	h.j.Next[len(h.j.Next)-1].Member = member
}

// reseed removes one member and adds it again with an empty data dir.
func (h *hands) reseed(name string, id shell.Word, member dumplog.ID) {
	m := h.member(member)
	server, peers := shell.FillFor("NAME_OF", name), shell.FillFor("PEER_URL_OF", name)
	if m != nil && m.Name != "" {
		server = shell.Text(m.Name)
	}
	if m != nil && len(m.PeerURLs) > 0 {
		peers = shell.Text(strings.Join(m.PeerURLs, ","))
	}
	learner := evidence.Version{Minor: h.minor()}.Has(release.Learners).Certain()
	h.addFor(name, "stop its server, on its host", shell.Format("systemctl stop etcd"))
	h.addFor(name, "remove it from the cluster", h.etcdctl().Then(shell.Format("member remove {}", id)))
	h.addFor(name, "move its data dir aside", shell.Format("mv -T <DATA_DIR> <DATA_DIR>.before-repair"))
	add := h.etcdctl().Then(shell.Format("member add"))
	if learner {
		add = add.With("--learner")
	}
	h.addFor(name, "add it again", add.Then(shell.Format("--peer-urls={} -- {}", peers, server)))
	h.addFor(name, "start it empty, with its usual flags and these",
		shell.Format("etcd --name {} --data-dir <DATA_DIR> --initial-advertise-peer-urls {} --initial-cluster-state "+
			"existing --initial-cluster {}",
			server, peers, h.cluster(name)))
	if learner {
		h.addFor(name, "promote it once it has caught up",
			h.etcdctl().Then(shell.Format("member promote <NEW_MEMBER_ID>")))
	}
}

// etcdctl is a call of etcdctl at the member that is kept.
func (h *hands) etcdctl() shell.Command {
	url := shell.FillFor("CLIENT_URL_OF", h.best.Name)
	if m := h.member(h.best.MemberID); m != nil && len(m.ClientURLs) > 0 {
		url = shell.Text(m.ClientURLs[0])
	}
	return shell.Format("etcdctl --endpoints {}", url).Then(h.login())
}

// login are the flags that the cluster asks for, as far as the files show.
func (h *hands) login() shell.Command {
	var c shell.Command
	if m := h.member(h.best.MemberID); m != nil &&
		slices.ContainsFunc(m.ClientURLs, func(u string) bool { return strings.HasPrefix(u, "https:") }) {
		c = shell.Format("--cacert <CA>.crt --cert <CLIENT>.crt --key <CLIENT>.key")
	}
	if h.best.Auth != nil && h.best.Auth.Enabled {
		c = c.Then(shell.Format("--user root"))
	}
	return c
}

// cluster is the value of --initial-cluster: the members that the kept member lists.
func (h *hands) cluster(name string) shell.Word {
	var all []string
	for i := range h.best.Membership.Members {
		m := &h.best.Membership.Members[i]
		if m.Name == "" || len(m.PeerURLs) == 0 {
			return shell.FillFor("INITIAL_CLUSTER_FOR", name)
		}
		for _, u := range m.PeerURLs {
			all = append(all, m.Name+"="+u)
		}
	}
	if len(all) == 0 {
		return shell.FillFor("INITIAL_CLUSTER_FOR", name)
	}
	return shell.Text(strings.Join(all, ","))
}

// member is a row of the kept member's member list.
func (h *hands) member(id dumplog.ID) *dumpdb.Member {
	for i := range h.best.Membership.Members {
		if m := &h.best.Membership.Members[i]; uint64(m.ID) == uint64(id) && id != 0 {
			return m
		}
	}
	return nil
}

// minor is the minor version of etcd that wrote the kept member, 0 when unknown.
func (h *hands) minor() int {
	if h.best.WroteBy.Etcd == nil {
		return 0
	}
	n, _ := evidence.MinorOf(*h.best.WroteBy.Etcd)
	return n
}
