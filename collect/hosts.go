package collect

import (
	"context"
	"net/url"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Host is a member and the command that collects it on its host.
type Host struct {
	Member string `json:"member"`
	Host   string `json:"host"`
	// Remote is the command on the host, which writes the archive to its standard output. File is the local file for
	// it.
	Remote  shell.Command `json:"-"`
	File    string        `json:"file"`
	Command shell.Command `json:"command"`
}

// Hosts asks the cluster for its members, at the first endpoint that answers, and makes the command for each that was
// started, with further flags of collect.
func Hosts(ctx context.Context, endpoints []string, access evidence.Access, flags ...string) ([]Host, error) {
	list, _, err := access.MemberList(ctx, endpoints)
	if err != nil {
		return nil, err
	}
	var out []Host
	for _, m := range list.Members {
		if m.Name != "" {
			out = append(out, hostOf(m.Name, append(m.ClientURLs, m.PeerURLs...), flags))
		}
	}
	return out, nil
}

// hostOf makes the command for one member. Names and URLs come from the cluster: they become arguments and nothing
// else.
func hostOf(name string, urls, flags []string) Host {
	h := Host{Member: name, File: shell.FileName(name) + ".tar.zst", Host: hostName(urls)}
	h.Remote = shell.Format("etcd-medic collect --yes --name {} -o -", shell.FileName(name))
	for _, f := range flags {
		h.Remote = h.Remote.With(f)
	}
	h.Command = shell.Format("ssh -- {} {} > {}", h.Host, h.Remote.String(), h.File)
	return h
}

// UnknownHost is the host in a printed command if no URL of the member can be reached from other hosts.
const UnknownHost = "HOST"

// hostName returns the first host that others can reach.
func hostName(urls []string) string {
	for _, s := range urls {
		u, err := url.Parse(s)
		if err != nil {
			continue
		}
		if n := u.Hostname(); n != "" && n != "localhost" && !strings.HasPrefix(n, "127.") && n != "::1" &&
			n != "0.0.0.0" {
			return n
		}
	}
	return UnknownHost
}
