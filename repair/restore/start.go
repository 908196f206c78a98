package restore

import (
	"fmt"
	"net"
	"net/url"
	"strings"
)

// startCommand is what starts a restored member. The state is existing although the cluster is new: with the restored WAL in place
// etcd does not look at it, and with a wrong --data-dir it stops instead of making an empty cluster.
func startCommand(p *Plan, m *PlanMember) string {
	dir := p.DataDir
	if dir == "" {
		dir = "{name}"
	}
	args := []string{"etcd", "--name", m.Name, "--data-dir", strings.ReplaceAll(dir, "{name}", m.Name),
		"--initial-advertise-peer-urls", strings.Join(m.PeerURLs, ","), "--listen-peer-urls", listenURLs(m.PeerURLs)}
	if len(m.ClientURLs) > 0 {
		args = append(args, "--advertise-client-urls", strings.Join(m.ClientURLs, ","), "--listen-client-urls", listenURLs(m.ClientURLs))
	}
	var initial []string
	for _, x := range p.Members {
		for _, u := range x.PeerURLs {
			initial = append(initial, x.Name+"="+u)
		}
	}
	args = append(args, "--initial-cluster", strings.Join(initial, ","), "--initial-cluster-token", p.Token, "--initial-cluster-state", "existing")
	for i, a := range args {
		args[i] = shellWord(a)
	}
	return strings.Join(args, " ")
}

// listenURLs replaces host names by all addresses: etcd listens on IP addresses only.
func listenURLs(urls []string) string {
	var out []string
	for _, s := range urls {
		u, err := url.Parse(s)
		if err == nil && (u.Scheme == "http" || u.Scheme == "https") && net.ParseIP(u.Hostname()) == nil && u.Hostname() != "localhost" {
			s = fmt.Sprintf("%s://0.0.0.0:%s", u.Scheme, u.Port())
		}
		out = append(out, s)
	}
	return strings.Join(out, ",")
}

// shellWord quotes what a shell would take apart.
func shellWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=:/.,@%+", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
