package restore

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/etcd-medic/etcd-medic/shell"
)

// startCommand returns the command that starts a restored member. The state is existing although the cluster is new:
// with the restored WAL etcd ignores it, and with a wrong --data-dir etcd stops instead of creating an empty cluster.
// Without a path on the host it names the data dir where it was written, in out.
func startCommand(p *Plan, m *PlanMember, out string) shell.Command {
	dir := p.DataDir
	if dir == "" {
		dir = filepath.Join(out, "{name}")
	}
	cmd := shell.Format("etcd --name {} --data-dir {} --initial-advertise-peer-urls {} --listen-peer-urls {}",
		m.Name, strings.ReplaceAll(dir, "{name}", m.Name), strings.Join(m.PeerURLs, ","), listenURLs(m.PeerURLs))
	if len(m.ClientURLs) > 0 {
		cmd = cmd.With("--advertise-client-urls", strings.Join(m.ClientURLs, ","), "--listen-client-urls",
			listenURLs(m.ClientURLs))
	}
	var initial []string
	for _, x := range p.Members {
		for _, u := range x.PeerURLs {
			initial = append(initial, x.Name+"="+u)
		}
	}
	return cmd.Then(shell.Format("--initial-cluster {} --initial-cluster-token {} --initial-cluster-state existing",
		strings.Join(initial, ","), p.Token))
}

// listenURLs replaces host names by all addresses, since etcd listens only on IP addresses.
func listenURLs(urls []string) string {
	var out []string
	for _, s := range urls {
		u, err := url.Parse(s)
		if err == nil && (u.Scheme == "http" || u.Scheme == "https") && net.ParseIP(u.Hostname()) == nil &&
			u.Hostname() != "localhost" {
			s = fmt.Sprintf("%s://0.0.0.0:%s", u.Scheme, u.Port())
		}
		out = append(out, s)
	}
	return strings.Join(out, ",")
}
