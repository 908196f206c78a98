package plan

import (
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestStepsSayWhatEtcdctlNeeds: pasted as they are, the commands fail at a cluster with TLS or auth. The first step of
// a procedure that calls etcdctl says so, once.
func TestStepsSayWhatEtcdctlNeeds(t *testing.T) {
	for name, tc := range map[string]struct {
		url   string
		auth  bool
		minor int
		want  string
	}{
		"plain": {"http://127.0.0.1:2379", false, 5, ""},
		"TLS":   {"https://127.0.0.1:2379", false, 5, "ETCDCTL_CACERT, ETCDCTL_CERT and ETCDCTL_KEY"},
		"auth":  {"http://127.0.0.1:2379", true, 5, ": ETCDCTL_USER=root"},
		"3.3":   {"http://127.0.0.1:2379", false, 3, ": ETCDCTL_API=3"},
		"TLS and auth": {"https://127.0.0.1:2379", true, 6,
			"ETCDCTL_CACERT, ETCDCTL_CERT and ETCDCTL_KEY; ETCDCTL_USER=root"},
	} {
		p := &Plan{Best: Choice{Name: "node1", ID: 1}, Cluster: Cluster{Voters: 2, Minor: tc.minor, Auth: tc.auth}}
		for i, action := range []Action{Best, Replace} {
			p.Members = append(p.Members, Member{Name: []string{"node1", "node2"}[i], ID: dumplog.ID(i + 1),
				ClientURLs: []string{tc.url}, PeerURLs: []string{"http://127.0.0.1:2380"}, Source: "s", Action: action})
		}
		b := &builder{p: p, way: Live, voters: 2, up: 2}
		b.add(StepStop, p.Member("node2")) // which needs no etcdctl
		b.add(StepBackup, p.Member("node1"))
		b.add(StepAdd, p.Member("node2"))
		b.add(StepVerify, nil)
		var notes []string
		for _, s := range b.steps {
			for i, c := range s.ByHand {
				if strings.Contains(c.Note, "what etcdctl reads") {
					notes = append(notes, c.Note)
					if s.Kind != StepBackup || i != 0 {
						t.Errorf("%s: said as command %d of step %s", name, i, s.Kind)
					}
				}
			}
		}
		if said := strings.Join(notes, "\n"); !strings.Contains(said, tc.want) || (tc.want == "") != (said == "") ||
			len(notes) > 1 {
			t.Errorf("%s: %q, want %q", name, said, tc.want)
		}
	}
}
