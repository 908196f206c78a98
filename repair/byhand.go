package repair

import (
	"fmt"
	"strings"

	"github.com/etcd-medic/etcd-medic/release"
)

// The commands for those who do a step themselves. DATA_DIR is the member's --data-dir, usually /var/lib/etcd; HOST is the machine
// of the member. They name what the operator has to fill in in capitals.

func endpoints(m *Member) string {
	if len(m.ClientURLs) > 0 {
		return "etcdctl --endpoints " + m.ClientURLs[0]
	}
	return "etcdctl --endpoints CLIENT_URL_OF_" + strings.ToUpper(fileName(m.Name))
}

func byHandBackup(best *Member) []Command {
	return []Command{
		{"etcdctl", endpoints(best) + " snapshot save before-repair.db"},
		{"note", "etcd-medic verify before-repair.db"},
	}
}

func byHandSave(m *Member) []Command {
	file := fileName(m.Name) + "-before-repair.db"
	return []Command{
		{"etcdctl", endpoints(m) + " snapshot save " + file},
		{"note", "etcd-medic compare before-repair.db " + file},
	}
}

func byHandStart(m *Member) []Command {
	return []Command{
		{"systemd", onHost(m, "systemctl start etcd")},
		{"static-pod", onHost(m, startPod)},
		{"etcdctl", endpoints(m) + " endpoint status -w table"},
	}
}

func onHost(m *Member, cmd string) string { return "[" + m.Name + "] " + cmd }

func byHandMoveLeader(best *Member) []Command {
	return []Command{
		{"etcdctl", endpoints(best) + " endpoint status --cluster -w table"},
		{"etcdctl", fmt.Sprintf("etcdctl --endpoints CLIENT_URL_OF_THE_LEADER move-leader %s", best.ID)},
	}
}

// fillers returns how many proposals make a log with default settings drop its start: up to 3.5 that happens with a raft snapshot,
// every --snapshot-count (100,000) entries; from 3.6 on every 100 entries.
func fillers(c *Cluster) int {
	switch {
	case c.has(release.LogTrimmedOften).Certain():
		return 110
	case c.LogStartsAtOne:
		return 100_010
	}
	return 0
}

func byHandAdvance(best *Member, c *Cluster) []Command {
	n := fillers(c)
	if n == 0 {
		return []Command{{"note", "not needed: " + best.Name + " took a raft snapshot, so its log no longer starts at index 1"}}
	}
	out := []Command{{"etcdctl", fmt.Sprintf("for i in $(seq %d); do %s alarm list >/dev/null; done", n, endpoints(best))}}
	if n > 1000 {
		out = append(out, Command{"note", "quicker: restart " + best.Name + " once with a small --snapshot-count before the repair, and move the leader to it again"})
	}
	return out
}

// The kubelet takes a while to end the container of a manifest that is gone; until then the data dir must not be touched.
const (
	stopUnit = "systemctl stop etcd"
	stopPod  = "mv /etc/kubernetes/manifests/etcd.yaml /etc/kubernetes/etcd.yaml.aside; while pgrep -x etcd >/dev/null; do sleep 1; done"
	startPod = "mv /etc/kubernetes/etcd.yaml.aside /etc/kubernetes/manifests/etcd.yaml"
)

func byHandStop(m *Member) []Command {
	return []Command{
		{"systemd", onHost(m, stopUnit)},
		{"static-pod", onHost(m, stopPod)},
	}
}

func byHandRemove(best, m *Member) []Command {
	return []Command{{"etcdctl", fmt.Sprintf("%s member remove %s", endpoints(best), m.ID)}}
}

func byHandSetAside(m *Member) []Command {
	cmd := onHost(m, "mv -T DATA_DIR DATA_DIR.before-repair")
	return []Command{{"systemd", cmd}, {"static-pod", cmd}, {"note", "where DATA_DIR is a mount point: mv -T DATA_DIR/member DATA_DIR/member.before-repair"}}
}

func byHandAdd(best, m *Member, learner bool) []Command {
	flag := " --learner"
	if !learner {
		flag = ""
	}
	return []Command{{"etcdctl", fmt.Sprintf("%s member add %s%s --peer-urls=%s", endpoints(best), m.ServerName(), flag, strings.Join(m.PeerURLs, ","))}}
}

func byHandStartEmpty(p *Plan, m *Member) []Command {
	env := fmt.Sprintf("ETCD_INITIAL_CLUSTER_STATE=existing ETCD_INITIAL_CLUSTER=\"%s\"", "INITIAL_CLUSTER")
	note := fmt.Sprintf("INITIAL_CLUSTER is the line that member add printed: the members that %s lists now, and %s=%s", p.Best.Name, m.ServerName(), strings.Join(m.PeerURLs, ","))
	return []Command{
		{"note", note},
		{"systemd", onHost(m, "set "+env+" in the unit's environment, then systemctl start etcd")},
		{"static-pod", onHost(m, "set --initial-cluster-state=existing --initial-cluster=INITIAL_CLUSTER in /etc/kubernetes/etcd.yaml.aside, then mv it back to /etc/kubernetes/manifests/etcd.yaml")},
	}
}

func byHandWait(best, m *Member) []Command {
	return []Command{
		{"etcdctl", endpoints(m) + " endpoint status -w table"},
		{"etcdctl", endpoints(best) + " endpoint hashkv --cluster -w table"},
		{"note", "if it does not serve within a minute: " + endpoints(best) + " alarm list, once a second, wakes it"},
	}
}

func byHandPromote(best *Member) []Command {
	return []Command{{"etcdctl", endpoints(best) + " member promote NEW_MEMBER_ID"}}
}

func byHandVerify(p *Plan) []Command {
	var dirs []string
	for i := range p.Members {
		if m := &p.Members[i]; m.Action != Remove && m.Action != Retire {
			dirs = append(dirs, m.Name+"=COPY_OF_"+strings.ToUpper(fileName(m.Name)))
		}
	}
	return []Command{
		{"etcdctl", endpoints(p.Member(p.Best.Name)) + " endpoint hashkv --cluster -w table"},
		{"etcdctl", endpoints(p.Member(p.Best.Name)) + " member list -w table"},
		{"note", "on fresh copies: etcd-medic diagnose " + strings.Join(dirs, " ")},
	}
}
